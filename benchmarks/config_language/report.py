"""The tasks and their goals; medians, ranges and verdicts of trials, and their page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.estimates import Readings, cells_as_json, goal, goals_section, spread
from benchmarks.report import Document, counted, result_page
from benchmarks.trials import Trial
from slipway.benchmarking.estimates import Estimate

GOAL_CONFIGS = 1000  # size of the project that the goals of `slipway validate` are about

GOAL_CONFIGS_OF_REVIEW = 500
"""The least size of a project that the goal of `slipway review` is about."""


@dataclass(frozen=True)
class Task:
    key: str  # `import`, `validate`, `review`, or `plan` and a template's name
    arguments: tuple[str, ...]  # of the probe
    output: str  # beginning of its standard output after its work is done


@dataclass(frozen=True)
class Measure:
    """One row of the result: a reading of a task in seconds or bytes."""

    task: str
    reading: str
    title: str
    unit: str = "s"
    per_unit: float = 1  # how many units are in a second or a byte
    goal: float | None = None  # upper limit in that unit


def measures(config_count: int, templates: Iterable[str]) -> list[Measure]:
    command = f"`slipway validate`, {counted(config_count, 'config')}"
    seconds, megabytes = (2.0, 150.0) if config_count == GOAL_CONFIGS else (None, None)
    review = f"`slipway review` of one changed file among {counted(config_count, 'config')}"
    review_seconds = 5.0 if config_count >= GOAL_CONFIGS_OF_REVIEW else None
    after_import = f"{command}, after the import"
    peak_memory = f"{command}: peak memory"
    both_imports = "import of the command line and of what reads configs"
    return [
        Measure("validate", "task_seconds", after_import, goal=seconds),
        Measure("validate", "peak_memory_bytes", peak_memory, "MB", 1e-6, megabytes),
        Measure("validate", "process_seconds", f"{command}, the whole process"),
        Measure("review", "process_seconds", review, goal=review_seconds),
        Measure("review", "processor_seconds", f"{review}: processor time"),
        Measure("import", "import_seconds", "import of the command line", goal=0.3),
        Measure("validate", "import_seconds", both_imports),
        *(
            Measure(
                f"plan {template}",
                "task_seconds",
                f"first plan of a process: {template}",
                "ms",
                1000,
                50,
            )
            for template in templates
        ),
    ]


def tasks(config_count: int, planned: Iterable[tuple[str, str]]) -> list[Task]:
    """Returns the tasks; the first of the `planned` configs is the changed one."""
    planned = list(planned)
    changed = planned[0][1]
    valid = f"{config_count} model config{'' if config_count == 1 else 's'} valid"
    return [
        Task("validate", ("validate",), valid),
        Task("review", ("review",), f"{changed} in `benchmark`\n  verdict   in place: "),
        Task("import", ("import",), "{"),
        *(Task(f"plan {template}", ("plan", name), name) for template, name in planned),
    ]


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
