"""The LMI image: AWS's, with the handlers in it. A stand-in base has no DJL Serving to start."""

import json
import os

import pytest

from slipway.embedded_aws.containers.engine import Engine
from slipway.embedded_aws.containers.images import SOURCES_LABEL
from slipway.image_sources import image_digest
from tests.support.containers import image_config
from tools.images.build import build
from tools.images.catalogue import ROOT, Image, catalogue
from tools.images.engine import recorded

pytestmark = [
    pytest.mark.images,
    pytest.mark.timeout(900),
]

# The handlers are compiled by the Python that runs them, which has no other way to say so.
_LIST = """
import json, pathlib, sys
here = pathlib.Path("/opt/slipway/handler")
tag = f".{sys.implementation.cache_tag}.pyc"
print(json.dumps({
    "on the path": str(here) in sys.path,
    "sources": sorted(path.stem for path in here.glob("*.py")),
    "compiled": sorted(path.name[: -len(tag)] for path in here.glob(f"__pycache__/*{tag}")),
}))
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    here = recorded(os.environ)
    images = [each for each in catalogue() if each.family == "lmi" and each.name in here]
    metafunc.parametrize("image", images, ids=[image.name for image in images])


def test_the_base_starts_and_finds_the_handlers(engine: Engine, image: Image) -> None:
    lines: list[str] = []
    built = build(engine, image, lines.append, may_pull=False)

    of_base, own = image_config(engine, built.base), image_config(engine, image.tag)
    for name in ("Entrypoint", "Cmd", "User", "ExposedPorts", "StopSignal"):
        assert own.get(name) == of_base.get(name)
    labels = {SOURCES_LABEL: image_digest(ROOT, "lmi")}
    assert own["Labels"] == {**(of_base.get("Labels") or {}), **labels}
    python = ["--entrypoint", "python3", "--network", "none", "--read-only", image.tag]
    found = json.loads(engine.answer("run", "--rm", *python, "-c", _LIST))
    assert found["on the path"]
    assert "slipway_handler" in found["sources"]
    assert found["compiled"] == found["sources"]
