"""One request to an endpoint that answers at once or has to wake, timed."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionError, EventStreamError, HTTPClientError

from slipway.access import Access
from slipway.client import is_asleep, wait_for_wake
from slipway.codes.code import Code
from slipway.config.load import InvalidConfigError
from slipway.config.sections.base import UnknownValueError
from slipway.config.sections.endpoint import AsyncInference
from slipway.errors import UserError
from slipway.json_text import parse_json
from slipway.project import Project

# SageMaker's limits of a real-time request: botocore's maximum of Body, and
# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html
MAX_BODY_BYTES = 6_291_456
_READ_TIMEOUT_SECONDS = 70  # SageMaker's 60, and the way there and back


@dataclass(frozen=True)
class Answer:
    """An endpoint's answer.

    The latency is from the call to the last byte, on the client's clock, including the set-up of
    the connection; after a wait, from the last attempt. `session_id` is of a session that the
    container opened or closed.
    """

    body: bytes
    content_type: str
    variant: str
    latency_seconds: float
    request_id: str
    waited_seconds: float = 0.0
    session_id: str | None = None


@dataclass(frozen=True)
class StreamAnswer:
    """An answer that came in parts, of which one may be several of the container's.

    `first_part_seconds` are from the call to the first one.
    """

    answer: Answer
    parts: int
    first_part_seconds: float


@dataclass(frozen=True)
class Request:
    """What is sent.

    Without a variant, the weights decide. The component is of an endpoint that scales to zero.
    `members` are further members of InvokeEndpoint, such as SessionId.
    """

    endpoint_name: str
    body: bytes
    content_type: str
    accept: str
    variant: str | None
    component: str | None = None
    members: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True)
class Wait:
    """How long a request waits for an endpoint that sleeps.

    `show` is called before each pause between two attempts, with the seconds that were waited.
    """

    limit_seconds: float
    show: Callable[[float], None]
    poll_seconds: float = 5.0


def invoke(request: Request, access: Access, wait: Wait | None = None) -> Answer:
    """Sends one request, once: a failure is reported, not retried.

    With `wait` it is sent again while the endpoint wakes. Raises `UserError` if the body is too
    large, there is no such endpoint, the endpoint sleeps, the model answered an error, or there was
    no answer.
    """
    with _located_errors(request, wait):
        client, attempt = _client(request, access, wait)
        response = client.invoke_endpoint(**_parameters(request))
        answered = response["Body"].read()
    return _answer(response, answered, attempt)


def invoke_stream(
    request: Request, access: Access, show: Callable[[bytes], None], wait: Wait | None = None
) -> StreamAnswer:
    """Sends one request like `invoke`, and shows the parts of the answer as they arrive."""
    parts: list[bytes] = []
    first_part_seconds: float | None = None
    with _located_errors(request, wait):
        client, attempt = _client(request, access, wait)
        response = client.invoke_endpoint_with_response_stream(**_parameters(request))
        with contextlib.closing(response["Body"]) as events:
            for event in events:
                part = event["PayloadPart"]["Bytes"]
                if first_part_seconds is None:
                    first_part_seconds = attempt.seconds()
                parts.append(part)
                show(part)
    whole = _answer(response, b"".join(parts), attempt)
    return StreamAnswer(whole, len(parts), first_part_seconds or whole.latency_seconds)


class _Attempt:
    """The clock of the last attempt; attempts that found the endpoint asleep do not count."""

    def __init__(self) -> None:
        self._called = self._begun = time.perf_counter()
        self._count = 0

    def begin(self, **_event: object) -> None:
        """Starts the clock of an attempt. The first one includes the set-up of the client."""
        if self._count:
            self._begun = time.perf_counter()
        self._count += 1

    def seconds(self) -> float:
        return time.perf_counter() - self._begun

    @property
    def waited_seconds(self) -> float:
        return self._begun - self._called


# Any: boto3's clients and their answers have no types of their own.
def _client(request: Request, access: Access, wait: Wait | None) -> tuple[Any, _Attempt]:
    if len(request.body) > MAX_BODY_BYTES:
        raise UserError.of(
            Code.REQUEST_TOO_LARGE,
            f"the request is {len(request.body):,} bytes; SageMaker takes at most "
            f"{MAX_BODY_BYTES:,}",
            "Send less in one request: SageMaker sets this limit.",
        )
    attempt = _Attempt()
    once = Config(retries={"total_max_attempts": 1}, read_timeout=_READ_TIMEOUT_SECONDS)
    client = access.client("sagemaker-runtime", once)
    if wait is not None:
        wait_for_wake(
            client,
            limit_seconds=wait.limit_seconds,
            poll_seconds=wait.poll_seconds,
            on_wait=wait.show,
        )
        client.meta.events.register("request-created.sagemaker-runtime", attempt.begin)
    return client, attempt


def _parameters(request: Request) -> dict[str, Any]:
    target = {"TargetVariant": request.variant} if request.variant else {}
    if request.component is not None:
        target["InferenceComponentName"] = request.component
    return {
        "EndpointName": request.endpoint_name,
        "Body": request.body,
        "ContentType": request.content_type,
        "Accept": request.accept,
        **target,
        **request.members,
    }


def _answer(response: Any, body: bytes, attempt: _Attempt) -> Answer:
    return Answer(
        body=body,
        content_type=response["ContentType"],
        variant=response["InvokedProductionVariant"],
        latency_seconds=attempt.seconds(),
        request_id=response["ResponseMetadata"]["RequestId"],
        # Of a new session there is also its end, after a semicolon.
        session_id=response.get("NewSessionId", response.get("ClosedSessionId")),
        waited_seconds=attempt.waited_seconds,
    )


@contextlib.contextmanager
def _located_errors(request: Request, wait: Wait | None) -> Iterator[None]:
    # A component has the name of its model's stack, and may be on another model's endpoint.
    endpoint_name = request.component or request.endpoint_name
    try:
        yield
    except EventStreamError as error:
        detail: Any = error.response
        raise UserError.of(
            Code.NO_ANSWER,
            f"the answer of {endpoint_name} broke off: "
            f"{detail['Error'].get('Message') or detail.get('Message') or error}",
            f"Look at its log with `{status_command(endpoint_name)}`.",
        ) from None
    except ClientError as error:
        if is_asleep(error.response):
            raise _asleep(endpoint_name, wait) from None
        raise refused(endpoint_name, error) from None
    except (ConnectionError, HTTPClientError) as error:
        raise UserError.of(
            Code.NO_ANSWER,
            f"no answer from {endpoint_name}: {error}",
            f"Look at it with `{status_command(endpoint_name)}`.",
        ) from None


def _asleep(endpoint_name: str, wait: Wait | None) -> UserError:
    model, _, environment = endpoint_name.rpartition("-")
    if wait is None:
        return UserError.of(
            Code.ASLEEP,
            f"{endpoint_name} sleeps: it has scaled to zero, and this request wakes it",
            f"Wait for it with `slipway invoke {model} --env {environment} --wait 900`, or ask "
            "again in some minutes.",
        )
    return UserError.of(
        Code.ASLEEP,
        f"{endpoint_name} is not awake after {wait.limit_seconds:g} s",
        f"Wait longer. `{status_command(endpoint_name)}` shows if a copy of the model is "
        "starting, and why one did not start.",
    )


def refused(endpoint_name: str, error: ClientError) -> UserError:
    response: dict[str, Any] = error.response  # type: ignore[assignment]  # ModelError adds members
    code, message = response["Error"]["Code"], response["Error"]["Message"]
    look = f"Look at its log with `{status_command(endpoint_name)}`."
    if code == "ModelError":
        status = response.get("OriginalStatusCode") or "no status"
        original = _one_line(response.get("OriginalMessage", message))
        if isinstance(status, int) and 400 <= status < 500:
            return UserError.of(
                Code.REQUEST_REFUSED, f"the model refused the request ({status}): {original}", look
            )
        return UserError.of(Code.MODEL_FAILED, f"the model failed ({status}): {original}", look)
    if code in ("ValidationError", "ValidationException") and "not found" in message:
        model, _, environment = endpoint_name.rpartition("-")
        return UserError.of(
            Code.NOT_DEPLOYED,
            message,
            f"`slipway status {model} --env {environment}` shows the deployment.",
        )
    if code == "ThrottlingException":
        # AWS sends no message.
        message = "the endpoint takes no further request now"
        look = "Send it again later, or raise `max_concurrency` of a serverless endpoint."
    elif code in ("ValidationError", "ValidationException"):
        look = "Change what the message names in the request or its options."
    return UserError.of(Code.INVOKE_REFUSED, f"{code}: {message}", look)


def _one_line(text: str) -> str:
    """Returns an error that is one text, as Triton has it; other JSON on one line."""
    try:
        content = parse_json(text)
    except ValueError:
        return text
    match content:
        case {"error": str(message), **rest} if not rest:
            return message
    return json.dumps(content, ensure_ascii=False)


def status_command(endpoint_name: str) -> str:
    model, _, environment = endpoint_name.rpartition("-")
    return f"slipway status {model} --env {environment}"


def mode_and_queue(
    project: Project, name: str, environment: str
) -> tuple[str | None, AsyncInference | None]:
    """Returns the endpoint's mode and its queue by the model's file; None if nothing tells them.

    An endpoint can be asked although its config is gone or has mistakes elsewhere.
    """
    mode = None
    try:
        config = project.config(name, environment).config
        mode = config.endpoint.mode
    except InvalidConfigError as error:
        config = error.known
    except UserError:
        return None, None
    try:
        queue = config.endpoint.queue
        # What a request needs must be known.
        return mode, queue if queue and (queue.input, queue.input_key_arn) else None
    except UnknownValueError:
        return mode, None
