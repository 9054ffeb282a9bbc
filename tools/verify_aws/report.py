"""The questions of `--deep`, and the result of a run for people and for programs."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml
from botocore.exceptions import BotoCoreError, ClientError

import slipway
from slipway.errors import UserError
from tools.verification.runner import Stage, carry_out
from tools.verify_aws.account import await_stack
from tools.verify_aws.checks import Cost
from tools.verify_aws.commands import CheckError, CommandError, Session
from tools.verify_aws.questions import Questions
from tools.verify_aws.removal import Remainder

# Errors that a stage may meet in an account. Any other exception is a bug of this program.
EXPECTED = (CommandError, UserError, BotoCoreError, ClientError)
NEVER_RUN = (
    "This command was tested on the embedded AWS. Slipway's authors have not run it in AWS: please "
    "report what it finds."
)
_WIDTH = 22
_AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


@dataclass(frozen=True)
class Answer:
    """The answer to a question of `--deep`; `otherwise` if Slipway relies on something else."""

    outcome: Literal["as expected", "otherwise", "no answer"]
    text: str


@dataclass
class Report:
    """The report of a run, with notes about the checks that were not possible.

    No document has the account. The address of AWS's Security Token Service, which answered,
    distinguishes AWS from a stand-in.
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


@dataclass(frozen=True)
class Step:
    """One question; questions.yaml says what each field is."""

    name: str
    ask: str
    title: str
    does: str
    minutes: int
    not_local: str
    needs_network: bool = False


_BEGIN = {
    "as expected": "",
    "otherwise": "**Not as Slipway relies on.** ",
    "no answer": "No answer: ",
}
_TABLE = Path(__file__).with_name("questions.yaml").read_text("utf-8")
STEPS = [Step(**row) for row in yaml.safe_load(_TABLE)]
MINUTES = sum(step.minutes for step in STEPS)
"""The estimated time of all steps together."""


def announcement() -> list[str]:
    """Returns what the steps do and how long, as lines for the user."""
    first = f"DEEP=1 adds {len(STEPS)} steps, about {MINUTES} minutes in AWS:"
    return [first, *(f"  - It {step.does} ({step.minutes} min)." for step in STEPS)]


def ask_all(report: Report, session: Session) -> None:
    """Asks every question, each as a stage of its own; one without an answer stops no other."""
    questions = Questions(session)
    for step in STEPS:
        if step.needs_network and not session.target.subnet_ids:
            text = "no network was named with `--subnets` and `--security-groups`."
            report.answers[step.name] = Answer("no answer", text)
        else:
            report.stage(step.name, partial(_ask, report, session, step, questions))


def _ask(report: Report, session: Session, step: Step, questions: Questions) -> str:
    """Asks a question, and keeps the answer; raises what the stage should fail with."""
    try:
        # A step that ran out of time may have left an operation in progress.
        status = await_stack(session.access, session.target.endpoint, until=session.until(60))
        if status is None or status.endswith("_IN_PROGRESS"):
            raise CommandError(f"the stack of the endpoint is {status}")
        answer = Answer("as expected", getattr(questions, step.ask)())
    except EXPECTED as error:
        is_other = isinstance(error, CheckError)
        text = str(error) if is_other else str(error).splitlines()[0] + "."
        report.answers[step.name] = Answer("otherwise" if is_other else "no answer", text)
        raise
    report.answers[step.name] = answer
    return answer.text


def render_answers(report: Report) -> str:
    """Returns a line for docs/fidelity.md of every question, also of those without an answer."""
    is_aws = report.is_answered_by_aws
    where = f"AWS in {report.region}" if is_aws else "the embedded AWS"
    lines = []
    for step in STEPS:
        answer = report.answers.get(step.name) or Answer("no answer", "the run ended before.")
        told = _BEGIN[answer.outcome] + answer.text
        if not is_aws and answer.outcome != "no answer":
            told += f" {step.not_local}"
        lines.append(f"- **{step.title}** ({where}, {report.started:%Y-%m-%d}): {told}\n")
    return report.without_account("".join(lines))
