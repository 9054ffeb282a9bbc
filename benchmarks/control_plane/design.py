"""Defines the commands, the numbers of configs, the trials and their order."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.trials import shuffled

_NAME = "NAME"


class Form(StrEnum):
    """The part of the project that a command works on."""

    SELECTED = "selected"
    """The one model that is named."""
    PLAIN = "plain"
    """Every model of the project."""


@dataclass(frozen=True)
class Command:
    """A command as a user types it.

    Args:
        key: its name in the results.
        form: the part of the project that it works on.
        words: the command line; NAME stands for the model.
        unattended: options added because no user answers questions.
        stated_only: whether it has no goal and is slow, so that it gets fewer trials.
    """

    key: str
    form: Form
    words: tuple[str, ...]
    unattended: tuple[str, ...] = ()
    stated_only: bool = False

    @property
    def shown(self) -> str:
        """Returns the command line for readers."""
        return " ".join(self.words)

    def line(self, model: str) -> tuple[str, ...]:
        """Returns the command line for one model."""
        return tuple(word.replace(_NAME, model) for word in (*self.words, *self.unattended))


def _cdk(verb: str, *unattended: str) -> tuple[Command, Command]:
    words = ("cdk", verb, _NAME)
    return (
        Command(
            f"cdk-{verb}-{Form.SELECTED}",
            Form.SELECTED,
            (*words, "-c", f"models={_NAME}"),
            unattended,
        ),
        Command(f"cdk-{verb}-{Form.PLAIN}", Form.PLAIN, words, unattended, stated_only=True),
    )


_DEPLOY, _DEPLOY_PLAIN = _cdk("deploy", "--require-approval", "never")
_DIFF, _DIFF_PLAIN = _cdk("diff")
_SYNTH, _SYNTH_PLAIN = _cdk("synth")
_PLAN = Command("slipway-plan", Form.SELECTED, ("slipway", "plan", _NAME))
_VALIDATE = Command("slipway-validate-selected", Form.SELECTED, ("slipway", "validate", _NAME))
_VALIDATE_ALL = Command("slipway-validate-plain", Form.PLAIN, ("slipway", "validate"))

# In the order of the report: commands with a goal come first.
COMMANDS = (
    _DEPLOY,
    _DIFF,
    _SYNTH,
    _PLAN,
    _VALIDATE,
    _VALIDATE_ALL,
    _DEPLOY_PLAIN,
    _DIFF_PLAIN,
    _SYNTH_PLAIN,
)


@dataclass(frozen=True)
class Goal:
    """The goal of one command.

    Args:
        command: the command whose time is compared.
        config_count: configs of the large project.
        baseline_count: configs of the small project.
        highest_ratio: upper limit of the time in the large project divided by the time in the small
            one.
    """

    command: Command
    config_count: int
    baseline_count: int
    highest_ratio: float


GOAL = Goal(_DEPLOY, config_count=500, baseline_count=1, highest_ratio=1.2)


@dataclass(frozen=True)
class Cell:
    """A command in a project of one size, which is one number of the result."""

    command: Command
    config_count: int


@dataclass(frozen=True)
class Design:
    """The whole plan of a run; the same values give the same order.

    Args:
        sizes: numbers of configs, ascending.
        trials: trials of each command at each size.
        stated_trials: most trials of commands without a goal.
        seed: seed of the order.
    """

    sizes: tuple[int, ...]
    trials: int
    stated_trials: int
    seed: int

    def rounds(self) -> list[list[Cell]]:
        """Returns the cells in the order in which they are timed.

        Every round has each cell at most once. Cells with fewer trials are spread over the rounds.
        """
        stated = _spread(self.stated_trials, self.trials)
        return shuffled(
            (
                [
                    Cell(command, size)
                    for command in COMMANDS
                    for size in self.sizes
                    if not command.stated_only or number in stated
                ]
                for number in range(self.trials)
            ),
            self.seed,
        )


def _spread(count: int, rounds: int) -> Sequence[int]:
    """Returns `count` of the rounds, spread evenly from the first to the last."""
    if count == 1:
        return [0]
    return [round(index * (rounds - 1) / (count - 1)) for index in range(count)]
