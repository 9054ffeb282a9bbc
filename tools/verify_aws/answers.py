"""The answers of `--deep`, as lines that docs/fidelity.md can take."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal
from urllib.parse import urlsplit

from tools.verify_aws.steps import STEPS, Step

# Characters of a long text that are kept: its beginning, and its end, which often has the reason.
_HEAD, _TAIL = 140, 100
_AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")

Outcome = Literal["as expected", "otherwise", "no answer"]
_BEGIN = {"as expected": "", "otherwise": "**Not as Slipway relies on.** ", "no answer": ""}


@dataclass(frozen=True)
class Answer:
    """The answer to one question.

    Args:
        name: of the step.
        outcome: whether there is one, and whether Slipway relies on something else.
        text: sentences.
    """

    name: str
    outcome: Outcome
    text: str


def quote(text: str) -> str:
    """Returns a text of AWS on one line, as code, so that nobody takes it for Slipway's words."""
    line = " ".join(text.replace("`", "'").split())
    if len(line) > _HEAD + _TAIL:
        line = f"{line[:_HEAD]} [...] {line[-_TAIL:]}"
    return f"`{line}`"


def is_aws(answered_by: str) -> bool:
    """Returns whether AWS itself answered, and no stand-in."""
    host = urlsplit(answered_by).hostname or ""
    return host.endswith(_AWS_DOMAINS)


def lines(answers: Sequence[Answer], *, answered_by: str, region: str, day: date) -> list[str]:
    """Returns a line for every question, also for those without an answer.

    Args:
        answers: the answers of a run.
        answered_by: address that answered the run's calls.
        region: AWS region.
        day: day of the run.
    """
    found = {answer.name: answer for answer in answers}
    return [
        _line(step, found.get(step.name), answered_by=answered_by, region=region, day=day)
        for step in STEPS
    ]


def _line(step: Step, answer: Answer | None, *, answered_by: str, region: str, day: date) -> str:
    where = f"AWS in {region}" if is_aws(answered_by) else "the embedded AWS"
    if answer is None:
        text = "No answer: the run ended before."
    elif answer.outcome == "no answer":
        text = f"No answer: {answer.text}"
    else:
        text = f"{_BEGIN[answer.outcome]}{answer.text}"
        if not is_aws(answered_by):
            text += f" {step.not_local}"
    return f"- **{step.title}** ({where}, {day.isoformat()}): {text}"
