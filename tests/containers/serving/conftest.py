"""Tests that talk to a server over sockets run on both event loops that it may have."""

import pytest

_SOCKETS = {
    "test_connections",
    "test_memory",
    "test_server",
    "test_spare_connections",
    "test_streams",
}
_LOOPS = [
    pytest.param("asyncio", id="asyncio"),
    pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop", marks=pytest.mark.size("all")),
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrizes the event loop of these modules' tests."""
    module = metafunc.module.__name__.rpartition(".")[2]
    if module in _SOCKETS and "anyio_backend" in metafunc.fixturenames:
        metafunc.parametrize("anyio_backend", _LOOPS)
