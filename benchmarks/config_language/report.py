"""Computes medians, ranges and verdicts from trials, and makes a page of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.config_language.design import GOAL_CONFIGS, Measure, Task, measures
from benchmarks.estimates import Readings, cells_as_json, goal, goals_section, spread
from benchmarks.report import Document, result_page
from benchmarks.trials import Trial
from slipway.benchmarking.estimates import Estimate


# Any: JSON.
def result(design: Mapping[str, Any], trials: Sequence[Trial[Task, Readings]]) -> dict[str, Any]:
    """Returns a goal for each measure of a task that ran, and every trial."""
    tasks = list(dict.fromkeys(trial.cell for trial in trials))
    ran = {task.key for task in tasks}  # an older result lacks newer tasks
    return {
        "goals": [
            _goal(measure, trials)
            for measure in measures(design["config_count"], design["templates"])
            if measure.task in ran
        ],
        "cells": cells_as_json(tasks, trials, lambda task: {"task": task.key}, dict),
    }


def _goal(measure: Measure, trials: Sequence[Trial[Task, Readings]]) -> dict[str, Any]:
    own = [trial.result[measure.reading] for trial in trials if trial.cell.key == measure.task]
    found = spread(value * measure.per_unit for value in own)
    # Every trial is to be within the goal.
    estimate = Estimate(found.median, found.low, found.high)
    return goal(measure.title, estimate, most=measure.goal, unit=measure.unit)


def page(document: Document) -> str:
    design = document["design"]
    sections = goals_section(document["goals"], "lowest to highest")
    if design["config_count"] != GOAL_CONFIGS:
        sections.append(
            f"The goals of `slipway validate` are for {GOAL_CONFIGS:,} configs, and were not "
            "measured."
        )
    return result_page(
        document,
        "What reading, checking and planning configs costs",
        [
            *sections,
            f"Found is the median of {design['trials']} trials. "
            "[config-language.json](config-language.json) has every trial.",
        ],
        f"Order and configs: seed {design['seed']}.",
    )
