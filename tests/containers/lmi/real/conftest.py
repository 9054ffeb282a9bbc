"""The real DJL Serving, of every version that DJL_SERVING_HOME names (separated by colons)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from embedded_aws.clients import LoopbackClients
from embedded_aws.server import EmbeddedAws
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.servers import DjlServing, Home

HOMES = [Path(home) for home in os.environ.get("DJL_SERVING_HOME", "").split(os.pathsep) if home]


@pytest.fixture(scope="session", params=HOMES or [None], ids=lambda home: home and home.name)
def home(request: pytest.FixtureRequest) -> Home:
    if request.param is None:
        pytest.skip("DJL_SERVING_HOME is not set; docs/embedded-aws/lmi.md says how to get it")
    return Home.of(request.param)


@pytest.fixture(scope="session")
def aws_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An S3 with the weights, from which the server copies them."""
    with EmbeddedAws(port=0, directory=tmp_path_factory.mktemp("aws")) as aws:
        clients = LoopbackClients(aws.url)
        servers.put_weights(clients.client("s3", "us-east-1"))
        yield aws.url
        clients.close()


@pytest.fixture(scope="module")
def serve_over_stand_ins(
    home: Home, aws_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., DjlServing]]:
    """Makes a server that is ready, with our handler over the stand-ins for a library."""
    with contextlib.ExitStack() as stack:

        def serve(library: str, **serving: Any) -> DjlServing:
            files = servers.package_for(servers.config_for(home, library, **serving))
            server = stack.enter_context(
                servers.started(
                    home,
                    tmp_path_factory.mktemp("djl"),
                    files,
                    aws_url=aws_url,
                    PYTHONPATH=servers.stand_in_path(library),
                )
            )
            server.wait_until_ready()
            return server

        yield serve


@pytest.fixture
def start(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Start]:
    """Starts servers on packages made by hand, with no AWS."""
    with contextlib.ExitStack() as stack:

        def begin(files: dict[str, bytes], **declared: str) -> DjlServing:
            directory = tmp_path_factory.mktemp("djl")
            return stack.enter_context(servers.started(home, directory, files, **declared))

        yield begin
