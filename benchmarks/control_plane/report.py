"""The commands and their goal; medians, ratios and the verdict of trials, and their page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.estimates import cells_as_json, goal, goals_section
from benchmarks.execution import Timing
from benchmarks.report import Document, estimated, picture, result_page, rounded, table
from benchmarks.trials import Trial, results_of
from slipway.benchmarking.estimates import Estimate, ratio_of_medians

_NAME = "NAME"


@dataclass(frozen=True)
class Command:
    key: str
    form: str  # `selected` works on the one model that is named, `plain` on every model
    typed: str  # NAME stands for the model

    @property
    def is_only_stated(self) -> bool:
        return self.form == "plain" and self.typed.startswith("cdk")

    def line(self, model: str) -> tuple[str, ...]:
        """Returns the command line for one model, without questions to a user."""
        words = self.typed.replace(_NAME, model).split()
        return (*words, "--require-approval", "never") if "deploy" in words else (*words,)


COMMANDS = (
    Command("cdk-deploy-selected", "selected", "cdk deploy NAME -c models=NAME"),
    Command("cdk-diff-selected", "selected", "cdk diff NAME -c models=NAME"),
    Command("cdk-synth-selected", "selected", "cdk synth NAME -c models=NAME"),
    Command("slipway-plan", "selected", "slipway plan NAME"),
    Command("slipway-validate-selected", "selected", "slipway validate NAME"),
    Command("slipway-validate-plain", "plain", "slipway validate"),
    Command("cdk-deploy-plain", "plain", "cdk deploy NAME"),
    Command("cdk-diff-plain", "plain", "cdk diff NAME"),
    Command("cdk-synth-plain", "plain", "cdk synth NAME"),
)
"""In the order of the report."""

GOAL_COMMAND = COMMANDS[0]
GOAL_CONFIGS, BASELINE_CONFIGS = 500, 1  # sizes of the large and of the small project
HIGHEST_RATIO = 1.2
"""Goal: the most that the command's time may grow from the small project to the large one."""


@dataclass(frozen=True)
class Cell:
    """A command in a project of one size, which is one number of the result."""

    command: Command
    config_count: int


def cells_of(sizes: Sequence[int]) -> list[Cell]:
    return [Cell(command, size) for command in COMMANDS for size in sizes]


# Any: JSON.
def result(
    sizes: Sequence[int], trials: Sequence[Trial[Cell, Timing]], seed: int
) -> dict[str, Any]:
    generator, smallest = np.random.default_rng(seed), sizes[0]

    def seconds(cell: Cell) -> list[float]:
        return [each.seconds for each in results_of(trials, cell)]

    ratios: dict[Cell, Estimate] = {
        cell: ratio_of_medians(seconds(cell), seconds(Cell(cell.command, smallest)), generator)
        for cell in cells_of(sizes)
        if cell.config_count != smallest
    }
    title = f"`{GOAL_COMMAND.typed}` among {GOAL_CONFIGS} configs, in times of {BASELINE_CONFIGS}"
    is_measured = smallest == BASELINE_CONFIGS
    found = ratios.get(Cell(GOAL_COMMAND, GOAL_CONFIGS)) if is_measured else None
    return {
        "goals": [goal(title, found, most=HIGHEST_RATIO)],
        "cells": cells_as_json(
            cells_of(sizes),
            trials,
            lambda cell: {
                "command": cell.command.key,
                "typed": cell.command.typed,
                "form": cell.command.form,
                "config_count": cell.config_count,
                # To the smallest size of the same command.
                "ratio": rounded(ratios[cell]) if cell in ratios else None,
            },
        ),
    }


def page(document: Document) -> str:
    design = document["design"]
    return result_page(
        document,
        "What a command costs as a project grows",
        [
            *goals_section(document["goals"], "95 % interval"),
            *picture(
                document,
                "benchmark-commands",
                "Seconds of cdk deploy, diff and synth by the number of configs, for one model and "
                "for every model",
            ),
            "Median wall time in seconds, by the number of model configs in the project. The ratio "
            "has its 95 % interval in brackets:",
            _medians(document),
            f"Each number is the median of {design['trials']} trials, or of "
            f"{design['stated_trials']} trials for `cdk` without `-c models=NAME`. "
            "[control-plane.json](control-plane.json) has every trial.",
        ],
        f"Order: seed {design['seed']}.",
        "Everything runs against the embedded AWS.",
    )


def _medians(document: Document) -> str:
    sizes = document["design"]["sizes"]
    rows = []
    for command in COMMANDS:
        own = [cell for cell in document["cells"] if cell["command"] == command.key]
        medians = (f"{cell['readings']['seconds']['median']:.2f}" for cell in own)
        ratio = [estimated(own[-1]["ratio"])] if len(sizes) > 1 else []
        rows.append([f"`{command.typed}`", *medians, *ratio])
    ratio_title = [f"{sizes[-1]} : {sizes[0]}"] if len(sizes) > 1 else []
    return table(["command", *map(str, sizes), *ratio_title], rows)
