"""The questions of `--deep`, in the order in which they are asked."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tools.verify_aws.account import await_stack
from tools.verify_aws.commands import CheckError, CommandError, Session
from tools.verify_aws.questions import Questions
from tools.verify_aws.report import EXPECTED, Answer, Report


@dataclass(frozen=True)
class Step:
    """One question.

    Args:
        title: begins the answer's line.
        does: what the step does, said before the user is asked.
        minutes: estimate of its time in AWS.
        not_local: what the embedded AWS cannot show, a sentence.
    """

    name: str
    ask: Callable[[Questions], str]
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
STEPS = (
    Step(
        "first log line",
        Questions.first_log_line,
        "First log line under the execution role",
        "reads the container's first log line",
        1,
        "The embedded AWS writes the log itself, and asks for no right.",
    ),
    Step(
        "change the type",
        Questions.change_type,
        "Instance type changed under autoscaling",
        "changes the instance type, which replaces the fleet",
        10,
        "The embedded AWS starts no instances, so that its time means nothing.",
    ),
    Step(
        "change the target",
        Questions.change_target,
        "Target value changed afterwards",
        "changes the target value of autoscaling",
        2,
        "The embedded AWS looks for policies as the provider's public schema says.",
    ),
    Step(
        "a broken container",
        Questions.break_container,
        "Type change with a container that cannot start",
        "changes the type again with a container that cannot start, which has to be undone",
        30,
        "The embedded AWS always gives a reason, so that its rollback is never silent.",
    ),
    Step(
        "only the rollout",
        Questions.change_rollout,
        "Change of `rollout` alone",
        "gives the endpoint a rollout with an alarm, and changes nothing else",
        15,
        "The embedded AWS moves real requests, and starts no instances.",
    ),
    Step(
        "only a tag",
        Questions.add_tag,
        "Change of a tag alone",
        "adds a tag, and changes nothing else",
        2,
        "AWS's documents do not say what it does, so that the embedded AWS shows a guess.",
    ),
    Step(
        "an alarm",
        Questions.set_off_alarm,
        "Alarm set off during a rollout",
        "brings out a fleet whose requests all fail, so that the rollout's alarm has to undo it",
        25,
        "The embedded AWS chose the words of its reason itself.",
    ),
    # The last one of the first endpoint: its stack may end as UPDATE_ROLLBACK_FAILED.
    Step(
        "the target after it",
        Questions.change_target_again,
        "Target value changed after a type change was rolled back",
        "changes the target value of the policy that the first rollback put again",
        5,
        "The embedded AWS looks for policies as the provider's public schema says.",
    ),
    Step(
        "a failing request",
        Questions.fail_request,
        "Failing request to an asynchronous endpoint",
        "deploys a second endpoint with a queue, and sends it a request that fails",
        15,
        "The embedded AWS chose the failure's text itself.",
    ),
    Step(
        "deletion in a VPC",
        Questions.delete_in_vpc,
        "Network interfaces after DeleteEndpoint",
        "destroys the second endpoint, and waits for its network interfaces to go",
        20,
        "The embedded AWS deletes interfaces at once.",
        needs_network=True,
    ),
)


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
        answer = Answer("as expected", step.ask(questions))
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
