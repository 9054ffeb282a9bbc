"""The result of a run: each stage with its seconds and outcome, for people and for programs."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

import slipway
from slipway.errors import UserError
from tools.verification.runner import Stage, carry_out
from tools.verify_aws.checks import Cost
from tools.verify_aws.commands import CommandError
from tools.verify_aws.removal import Remainder

# Errors that a stage may meet in an account. Any other exception is a bug of this program.
EXPECTED = (CommandError, UserError, BotoCoreError, ClientError)
NEVER_RUN = (
    "This command was tested on the embedded AWS. Slipway's authors have not run it in AWS: please "
    "report what it finds."
)
_WIDTH = 22
_AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
# Characters of a long text that are kept: its beginning, and its end, which often has the reason.
_HEAD, _TAIL = 140, 100


@dataclass(frozen=True)
class Answer:
    """The answer to a question of `--deep`; `otherwise` if Slipway relies on something else."""

    outcome: Literal["as expected", "otherwise", "no answer"]
    text: str


@dataclass
class Report:
    """The report of a run.

    Args:
        account: AWS account; no document has it.
        answered_by: address of AWS's Security Token Service, which distinguishes AWS from a
            stand-in.
        notes: the checks that were not possible.
    """

    account: str
    region: str
    answered_by: str
    image: str
    cost: Cost
    notes: Sequence[str]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    stages: list[Stage] = field(default_factory=list)
    remains: list[Remainder] | None = None
    answers: dict[str, Answer] = field(default_factory=dict)

    def stage(self, name: str, action: Callable[[], str]) -> bool:
        """Runs a stage and prints how it ended; returns whether it succeeded."""
        say(f"{name:{_WIDTH}} ...", end="")
        carry_out(name, action, EXPECTED, self._keep)
        return self.stages[-1].outcome == "ok"

    def _keep(self, stage: Stage) -> None:
        self.stages.append(stage)
        say(f" {stage.outcome} after {stage.seconds:.0f} s: {stage.detail}")

    @property
    def is_good(self) -> bool:
        """Returns whether every stage succeeded and nothing is left unintentionally."""
        is_removed = self.remains is not None and all(item.is_meant for item in self.remains)
        return bool(self.stages) and is_removed and all(s.outcome == "ok" for s in self.stages)

    def say_remains(self) -> None:
        if self.remains is None:
            say("\nWhat is left is unknown. Run `make verify-aws` again to remove and list it.")
            return
        say("\nLeft in the account, with the commands that remove it, in this order:")
        for item in self.remains:
            expected = "" if item.is_meant else " (not meant to be left)"
            say(f"\n  {item.kind} {item.name}{expected}")
            if item.note:
                say(f"    {item.note}")
            for command in item.commands:
                say(f"    $ {command}")

    def render(self) -> str:
        document: dict[str, Any] = {
            "slipway": slipway.__version__,
            "result": "ok" if self.is_good else "failed",
            "started": self.started.isoformat(timespec="seconds"),
            "region": self.region,
            "answered_by": self.answered_by,
            "image": self.image,
            "cost": self.cost._asdict(),
            "not_checked": list(self.notes),
            "stages": [asdict(stage) for stage in self.stages],
            "answers": [{"name": name, **asdict(each)} for name, each in self.answers.items()],
            "left": None if self.remains is None else [asdict(item) for item in self.remains],
        }
        return self.without_account(json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def without_account(self, text: str) -> str:
        """Returns a text for others: ACCOUNT stands for the account's number in it."""
        return text.replace(self.account, "ACCOUNT")

    @property
    def is_answered_by_aws(self) -> bool:
        return (urlsplit(self.answered_by).hostname or "").endswith(_AWS_DOMAINS)


def say(text: str, end: str = "\n") -> None:
    """Prints to standard error, because standard output may be the document's."""
    print(text, end=end, file=sys.stderr, flush=True)


def quote(text: str) -> str:
    """Returns a text of AWS on one line, as code, so that nobody takes it for Slipway's words."""
    line = " ".join(text.replace("`", "'").split())
    if len(line) > _HEAD + _TAIL:
        line = f"{line[:_HEAD]} [...] {line[-_TAIL:]}"
    return f"`{line}`"
