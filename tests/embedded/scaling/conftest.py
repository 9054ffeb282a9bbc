"""A model's stack on an embedded AWS whose clock the tests move."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded.hosting.conftest import Account
from tests.embedded.hosting.hosted_components import Hosted
from tests.support.clocks import MovableClock
from tests.support.slipway_stack import SlipwayStack, slipway_stack


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def stack(tmp_path: Path, clock: MovableClock) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path, time_scale=0.02, clock=clock) as stack:
        yield stack


def hosted_by(stack: SlipwayStack) -> Hosted:
    return Hosted(Account(stack.stacks.clients, stack.directory))
