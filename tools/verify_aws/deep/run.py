"""Asks one question after the other."""

from collections.abc import Callable
from functools import partial

from tools.verify_aws.answers import Answer
from tools.verify_aws.commands import CommandError, Session
from tools.verify_aws.deep.queue import Queue
from tools.verify_aws.deep.updates import Updates
from tools.verify_aws.report import EXPECTED, CheckError, Report
from tools.verify_aws.stacks import await_stack
from tools.verify_aws.steps import STEPS


def ask_all(report: Report, session: Session) -> None:
    """Asks every question, each as a stage of its own; one without an answer stops no other.

    Args:
        report: takes the stages and the answers.
        session: runs the commands.
    """
    deployment = session.deployment
    deep = deployment.target.deep
    actions = {**Updates(session).actions(), **Queue(session).actions()}
    for step in STEPS:
        if step.needs_network and (deep is None or not deep.subnet_ids):
            text = "no network was named with `--subnets` and `--security-groups`."
            report.answers.append(Answer(step.name, "no answer", text))
            continue
        report.stage(step.name, partial(_ask, report, session, step.name, actions[step.name]))


def _ask(report: Report, session: Session, name: str, action: Callable[[], str]) -> str:
    """Asks a question, and keeps the answer; raises what the stage should fail with."""
    deployment = session.deployment
    try:
        # A step that ran out of time may have left an operation in progress.
        status = await_stack(deployment.access, deployment.target.endpoint, until=session.until(60))
        if status is None or status.endswith("_IN_PROGRESS"):
            raise CommandError(f"the stack of the endpoint is {status}")
        text = action()
    except CheckError as error:
        report.answers.append(Answer(name, "otherwise", str(error)))
        raise
    except EXPECTED as error:
        report.answers.append(Answer(name, "no answer", str(error).splitlines()[0] + "."))
        raise
    report.answers.append(Answer(name, "as expected", text))
    return text
