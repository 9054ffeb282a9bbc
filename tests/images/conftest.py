"""The engine, and each image as its Dockerfile makes it now."""

import contextlib
import os
from collections.abc import Iterator

import pytest

from slipway.embedded_aws.containers.engine import Engine
from tests.images.families import FAMILIES, Tried
from tests.support.containers import Client
from tools.images.build import build
from tools.images.catalogue import catalogue
from tools.images.engine import open_engine, recorded


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test that takes `tried` for the newest image of each family and Python.

    With `once_a_family` it runs for the newest image of each family.
    """
    if "tried" in metafunc.fixturenames:
        here = recorded(os.environ)
        of_each_python = "once_a_family" not in metafunc.fixturenames
        newest = {
            (each.family, each.python if of_each_python else None): each
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
def once_a_family() -> None:
    """For tests of what every Python does alike."""


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
