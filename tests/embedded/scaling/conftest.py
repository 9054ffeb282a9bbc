"""A model's stack on an embedded AWS whose clock the tests move."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.embedded.hosting.conftest import Account
from tests.embedded.hosting.hosted_components import Hosted
from tests.support.clocks import MovableClock
from tests.support.projects import DIGEST
from tests.support.slipway_stack import SlipwayStack, publish_functions, slipway_stack

GOLDEN = Path(__file__).parents[2] / "golden" / "templates"


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def stack(tmp_path: Path, clock: MovableClock) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path, time_scale=0.02, clock=clock) as stack:
        yield stack


def golden_template(stack: SlipwayStack, case: str) -> dict[str, Any]:
    """Returns the template of a golden case, with an artifact that the stand-in serves."""
    text = (GOLDEN / f"{case}.json").read_text("utf-8").replace(DIGEST, stack.publish("ok"))
    template: dict[str, Any] = json.loads(text)
    publish_functions(stack.stacks, template)
    return template


def hosted_by(stack: SlipwayStack) -> Hosted:
    return Hosted(Account(stack.stacks.clients, stack.directory))
