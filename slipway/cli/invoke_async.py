"""`slipway invoke` of an asynchronous endpoint: the wait, and the answer."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from slipway.codes.code import Code
from slipway.errors import UserError

# Imported when they are needed, because planning takes its time.
if TYPE_CHECKING:
    from slipway.config.sections.endpoint import AsyncInference
    from slipway.operations.invoke_async import AsyncAnswer
    from slipway.project import Project

# SageMaker's own limit for the computation, InvocationTimeoutSeconds.
DEFAULT_WAIT_SECONDS = 900.0
_REPORT_EVERY_SECONDS = 5.0


def queue_of(project: "Project", name: str, environment: str) -> "AsyncInference | None":
    """Returns the queue of a model's endpoint; None for an endpoint that answers at once.

    An endpoint can be asked although its config is gone or has mistakes elsewhere.
    """
    from slipway.config.load import InvalidConfigError
    from slipway.config.sections.base import UnknownValueError

    if name not in project.files:
        return None
    try:
        config = project.config(name, environment).config
    except InvalidConfigError as error:
        config = error.known
    try:
        queue = config.endpoint.queue
        # What a request needs must be known.
        return queue if queue and (queue.input, queue.input_key_arn) else None
    except UnknownValueError:
        return None


def require_plain_request(*, variant: str | None, stream: bool) -> None:
    """Refuses options that a queue has no use for; raises `UserError`."""
    unread = "--variant" if variant is not None else "--stream" if stream else None
    if unread is not None:
        raise UserError.of(
            Code.WRONG_OPTIONS,
            f"`{unread}` has no effect: the endpoint is asynchronous",
            f"Leave out `{unread}`.",
        )


def show_wait(endpoint_name: str) -> Callable[[float], None]:
    """Returns a function that tells, on standard error, how long a request has waited."""
    told_seconds = 0.0

    def show(passed_seconds: float) -> None:
        nonlocal told_seconds
        if passed_seconds - told_seconds >= _REPORT_EVERY_SECONDS:
            told_seconds = passed_seconds
            typer.echo(f"{endpoint_name}: no answer after {passed_seconds:.0f} s", err=True)

    return show


def as_document(answer: "AsyncAnswer", content: Any) -> dict[str, Any]:
    """Returns what `--json` prints.

    Args:
        answer: as it was read from its object.
        content: its body as JSON or text.
    """
    return {
        "answer": content,
        "content_type": answer.content_type,
        "waited_milliseconds": round(answer.waited_seconds * 1000, 3),
        "inference_id": answer.inference_id,
        "input_location": answer.input_location,
        "output_location": answer.output_location,
    }


def print_answer(answer: "AsyncAnswer") -> None:
    """Prints the answer on standard output, and where it lies on standard error."""
    sys.stdout.buffer.write(answer.body)
    if sys.stdout.isatty() and not answer.body.endswith(b"\n"):
        sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()
    typer.echo(f"answered after {answer.waited_seconds:.1f} s: {answer.output_location}", err=True)
