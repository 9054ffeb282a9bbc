"""Podman in the place of Docker. An image whose build needs no package is built and run by it."""

import os
from collections.abc import Iterator

import pytest

from slipway.embedded_aws.containers.engine import Engine
from tools.images.build import build
from tools.images.catalogue import catalogue
from tools.images.engine import open_engine

pytestmark = [
    pytest.mark.podman,
    pytest.mark.timeout(900),
]

CODE = """
import os, pathlib, socket
import slipway_handler
print(os.getuid(), *(name for _, name in socket.if_nameindex()), slipway_handler.__file__)
pathlib.Path("/tmp/file").touch()
try:
    pathlib.Path("/file").touch()
except OSError as error:
    print(error.strerror)
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with open_engine({**os.environ, "SLIPWAY_CONTAINER_ENGINE": "podman"}) as engine:
        yield engine


def test_podman_builds_an_image_and_runs_it_without_network_and_rights(engine: Engine) -> None:
    (image,) = (each for each in catalogue() if each.name == "lmi-0.27.0")
    assert engine.name == "podman"
    build(engine, image, lambda _: None, may_pull=False)
    options = ("--network=none", "--read-only", "--tmpfs=/tmp", "--user=1000", "--cap-drop=ALL")
    told = engine.answer("run", "--rm", *options, "--entrypoint=python3", image.tag, "-c", CODE)
    assert told == ("1000 lo /opt/slipway/handler/slipway_handler.py\nRead-only file system")
