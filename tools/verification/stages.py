"""Carries out one stage of a verification, and keeps how it ended."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Stage:
    """One stage that was run; it is left out if a stage that it needs did not succeed.

    `detail` is its finding, or the reason of its failure.
    """

    name: str
    outcome: Literal["ok", "failed", "interrupted", "left out"]
    seconds: float
    detail: str


def carry_out(
    name: str,
    action: Callable[[], str],
    expected: tuple[type[Exception], ...],
    keep: Callable[[Stage], object],
) -> None:
    """Carries out a stage, which may fail with expected errors; others are bugs, and are raised.

    `keep` takes how it ended, also after an interrupt or a bug.
    """
    begun = time.monotonic()
    outcome: Literal["ok", "failed", "interrupted"] = "interrupted"
    detail = "interrupted"
    try:
        detail = action()
        outcome = "ok"
    except expected as error:
        outcome, detail = "failed", str(error)
    finally:
        keep(Stage(name, outcome, round(time.monotonic() - begun, 1), detail))
