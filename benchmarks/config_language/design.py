"""Defines the measurements, their goals, and the order of the processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks.report import counted
from benchmarks.trials import shuffled

GOAL_CONFIGS = 1000
"""Size of the project that the goals are about."""

Reading = Literal["import_seconds", "task_seconds", "peak_memory_bytes", "process_seconds"]
Readings = Mapping[str, float]
"""The readings of one process by name, in seconds or bytes."""


@dataclass(frozen=True)
class Task:
    """The work of one fresh process.

    Args:
        key: its name in the results: `import`, `validate`, or `plan` and a template's name.
        arguments: arguments of the probe.
        output: beginning of its standard output after its work is done.
    """

    key: str
    arguments: tuple[str, ...]
    output: str


@dataclass(frozen=True)
class Measure:
    """One row of the result.

    Args:
        task: the processes that it is read from.
        reading: name of the reading.
        title: shown to readers.
        unit: unit of the shown value.
        per_unit: shown units in a second or a byte: 1000 for `ms`, 1e-6 for `MB`.
        goal: upper limit, in seconds or bytes; None if the value has no goal.
    """

    task: Task
    reading: Reading
    title: str
    unit: str
    per_unit: float
    goal: float | None = None

    @property
    def key(self) -> str:
        """Returns its name in the results."""
        return f"{self.task.key} {self.reading}"

    def shown(self, value: float) -> str:
        """Returns a value in its unit."""
        digits = 2 if self.unit == "s" else 0
        return f"{value * self.per_unit:,.{digits}f} {self.unit}"


@dataclass(frozen=True)
class Design:
    """The whole plan of a run; the same values give the same order.

    Args:
        config_count: configs of the project.
        trials: fresh processes for each task.
        seed: seed of the order and of the configs.
        planned: the config to plan for each template, by the template's name.
    """

    config_count: int
    trials: int
    seed: int
    planned: tuple[tuple[str, str], ...]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Returns the tasks in the order of the report."""
        return tuple(dict.fromkeys(measure.task for measure in self.measures))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Returns the rows of the result; `slipway validate` has goals for `GOAL_CONFIGS` only."""
        count = self.config_count
        valid = f"{count} model config{'' if count == 1 else 's'} valid"
        validate = Task("validate", ("validate",), valid)
        is_goal = count == GOAL_CONFIGS
        command = f"`slipway validate`, {counted(count, 'config')}"
        return (
            Measure(
                validate,
                "task_seconds",
                f"{command}, after the import",
                "s",
                1,
                2.0 if is_goal else None,
            ),
            Measure(
                validate,
                "peak_memory_bytes",
                f"{command}: peak memory",
                "MB",
                1e-6,
                150e6 if is_goal else None,
            ),
            Measure(validate, "process_seconds", f"{command}, the whole process", "s", 1),
            Measure(
                Task("import", ("import",), "{"),
                "import_seconds",
                "import of the command line",
                "s",
                1,
                0.3,
            ),
            Measure(
                validate,
                "import_seconds",
                "import of the command line and of what reads configs",
                "s",
                1,
            ),
            *(
                Measure(
                    Task(f"plan {template}", ("plan", name), name),
                    "task_seconds",
                    f"first plan of a process: {template}",
                    "ms",
                    1000,
                    0.05,
                )
                for template, name in self.planned
            ),
        )

    def rounds(self) -> list[list[Task]]:
        """Returns the tasks in the order in which they run: each once per round."""
        return shuffled([self.tasks] * self.trials, self.seed)
