"""What an import finds beside the fields of the config: guesses, changes, omissions, refusals."""

from dataclasses import dataclass, field, replace
from typing import Any

from slipway.codes.code import Code
from slipway.deployed.answers import Answer, shown
from slipway.errors import Kind, Problem
from slipway.importing.draft import FieldName, Guess, Setting

NO_FIELD = "no field of the config says it."


@dataclass
class Findings:
    guesses: dict[FieldName, Guess] = field(default_factory=dict)
    changed: list[Setting] = field(default_factory=list)
    left_out: list[Setting] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def guess(self, path: FieldName, reason: str) -> None:
        self.guesses[path] = Guess(reason)

    def change(self, name: str, value: Any, reason: str) -> None:
        """Notes that the config has another value; the reason begins with it, and is a sentence."""
        self.changed.append(Setting(name, shown(value), reason))

    def leave_out(self, name: str, value: Any, reason: str = NO_FIELD) -> None:
        """Notes that the config lacks a setting, with a sentence as the reason."""
        self.left_out.append(Setting(name, shown(value), reason))

    def leave_out_rest(self, answer: Answer, prefix: str = "", **reasons: str) -> None:
        """Notes what was not taken out of an answer, with reasons by the outermost name."""
        for name, value in answer.rest():
            self.leave_out(f"{prefix}{name}", value, reasons.get(name.partition(".")[0], NO_FIELD))

    def refuse(self, message: str, remedy: str) -> None:
        """Notes what no config can say, so that none is written."""
        self.problems.append(
            Problem(Code.IMPORT_INEXPRESSIBLE, Kind.COMPATIBILITY, message, remedy)
        )

    def refusals(self) -> list[Problem]:
        """Returns every problem; if there is one, every setting that was left out too."""
        if not self.problems:
            return []
        remedy = "Set it by hand where the new endpoint needs it."
        return [
            *self.problems,
            *(
                replace(
                    self.problems[0], message=f"{each.shown}: {each.reason[:-1]}", remedy=remedy
                )
                for each in self.left_out
            ),
        ]
