"""These tests run on the event loop of the images."""

import pytest


@pytest.fixture
def anyio_backend():
    return "asyncio", {"use_uvloop": True}
