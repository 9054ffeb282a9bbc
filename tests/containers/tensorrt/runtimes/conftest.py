"""A machine of stand-ins for every test of this folder that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers.tensorrt.runtimes.machine import Machine, standin_machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    with standin_machine() as made:
        yield made
