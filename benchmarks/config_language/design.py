"""Defines the measurements and their goals."""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.report import counted

GOAL_CONFIGS = 1000
"""Size of the project that the goals of `slipway validate` are about."""

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
