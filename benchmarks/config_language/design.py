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
    """The work of one fresh process.

    Args:
        key: its name in the results: `import`, `validate`, `review`, or `plan` and a template's
            name.
        arguments: arguments of the probe.
        output: beginning of its standard output after its work is done.
    """

    key: str
    arguments: tuple[str, ...]
    output: str


@dataclass(frozen=True)
class Unit:
    """A unit of the page: how many are in a second or a byte, and the digits after the point."""

    name: str
    per_unit: float
    digits: int

    def shown(self, value: float) -> str:
        """Returns a value in seconds or bytes in this unit."""
        return f"{value * self.per_unit:,.{self.digits}f} {self.name}"

    def goal(self, value: float) -> str:
        """Returns a goal in this unit."""
        return f"{value * self.per_unit:g} {self.name}"


SECONDS, MILLISECONDS, MEGABYTES = Unit("s", 1, 2), Unit("ms", 1000, 0), Unit("MB", 1e-6, 0)


@dataclass(frozen=True)
class Measure:
    """One row of the result: a reading of a task in seconds or bytes.

    A goal is its upper limit; None is of a value that is only stated.
    """

    task: str
    reading: str
    title: str
    unit: Unit
    goal: float | None = None

    @property
    def key(self) -> str:
        """Returns its name in the results."""
        return f"{self.task} {self.reading}"


def measures(config_count: int, templates: Iterable[str]) -> list[Measure]:
    """Returns the rows of the result."""
    command = f"`slipway validate`, {counted(config_count, 'config')}"
    seconds, peak_bytes = (2.0, 150e6) if config_count == GOAL_CONFIGS else (None, None)
    review = f"`slipway review` of one changed file among {counted(config_count, 'config')}"
    review_seconds = 5.0 if config_count >= GOAL_CONFIGS_OF_REVIEW else None
    after_import = f"{command}, after the import"
    both_imports = "import of the command line and of what reads configs"
    return [
        Measure("validate", "task_seconds", after_import, SECONDS, seconds),
        Measure("validate", "peak_memory_bytes", f"{command}: peak memory", MEGABYTES, peak_bytes),
        Measure("validate", "process_seconds", f"{command}, the whole process", SECONDS),
        Measure("review", "process_seconds", review, SECONDS, review_seconds),
        Measure("review", "processor_seconds", f"{review}: processor time", SECONDS),
        Measure("import", "import_seconds", "import of the command line", SECONDS, 0.3),
        Measure("validate", "import_seconds", both_imports, SECONDS),
        *(
            Measure(
                f"plan {template}",
                "task_seconds",
                f"first plan of a process: {template}",
                MILLISECONDS,
                0.05,
            )
            for template in templates
        ),
    ]


def tasks(config_count: int, planned: Iterable[tuple[str, str]]) -> list[Task]:
    """Returns the tasks; `planned` has each template with the config to plan.

    The first of them is the changed one.
    """
    planned = list(planned)
    changed = planned[0][1]
    valid = f"{config_count} model config{'' if config_count == 1 else 's'} valid"
    return [
        Task("validate", ("validate",), valid),
        Task("review", ("review",), f"{changed} in `benchmark`\n  verdict   in place: "),
        Task("import", ("import",), "{"),
        *(Task(f"plan {template}", ("plan", name), name) for template, name in planned),
    ]
