"""The questions of `--deep`, in the order in which they are asked."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from tools.verify_aws.account import await_stack
from tools.verify_aws.commands import CheckError, CommandError, Session
from tools.verify_aws.questions import Questions
from tools.verify_aws.report import EXPECTED, Answer, Report


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
