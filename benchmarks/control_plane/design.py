"""Defines the commands, the goal and the cells."""

from collections.abc import Sequence
from dataclasses import dataclass

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
GOAL_CONFIGS, BASELINE_CONFIGS = 500, 1
"""Sizes of the large and of the small project."""
HIGHEST_RATIO = 1.2
"""Goal: the most that the command's time may grow from the small project to the large one."""


@dataclass(frozen=True)
class Cell:
    """A command in a project of one size, which is one number of the result."""

    command: Command
    config_count: int


def cells_of(sizes: Sequence[int]) -> list[Cell]:
    return [Cell(command, size) for command in COMMANDS for size in sizes]
