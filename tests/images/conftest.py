"""The engine, and each image as its Dockerfile makes it now."""

import contextlib
import os
from collections.abc import Iterator

import pytest

from embedded_aws.containers.engine import Engine
from tests.images.families import FAMILIES, Tried
from tests.support.containers import Client
from tools.images.build import build
from tools.images.catalogue import catalogue
from tools.images.engine import open_engine
from tools.images.record import recorded


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test that takes `tried` for the newest image of each family and Python."""
    if "tried" in metafunc.fixturenames:
        here = recorded(os.environ)
        newest = {
            (each.family, each.python): each
            for each in catalogue()
            if each.name in here and each.family in FAMILIES
        }
        metafunc.parametrize(
            "tried",
            newest.values(),
            ids=[image.name for image in newest.values()],
            indirect=True,
            scope="module",
        )


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    # Workers share an engine of the project's own.
    with open_engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def tried(engine: Engine, request: pytest.FixtureRequest) -> Iterator[Tried]:
    """An image, built from the present sources, and a client of its containers."""
    lines: list[str] = []
    built = build(engine, request.param, lines.append, may_pull=False)
    with contextlib.closing(Client(engine, request.param.tag)) as client:
        yield Tried(engine, built, client, FAMILIES[request.param.family])
