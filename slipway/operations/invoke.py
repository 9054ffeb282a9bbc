"""One request to an endpoint, timed."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionError, EventStreamError, HTTPClientError

from slipway.access import Access
from slipway.codes.code import Code
from slipway.errors import UserError

# SageMaker's limits of a real-time request: botocore's maximum of Body, and
# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html
MAX_BODY_BYTES = 6_291_456
_READ_TIMEOUT_SECONDS = 70  # SageMaker's 60, and the way there and back


@dataclass(frozen=True)
class Answer:
    """An endpoint's answer.

    Args:
        body: as the container wrote it.
        content_type: Content-Type of the body.
        variant: production variant that served it.
        latency_seconds: from the call to the last byte, on the client's clock, including the set-up
            of the connection.
        request_id: SageMaker's.
    """

    body: bytes
    content_type: str
    variant: str
    latency_seconds: float
    request_id: str


@dataclass(frozen=True)
class StreamAnswer:
    """An answer that came in parts.

    Args:
        answer: the whole of it.
        parts: how many there were; one may be several of the container's.
        first_part_seconds: from the call to the first one.
    """

    answer: Answer
    parts: int
    first_part_seconds: float


@dataclass(frozen=True)
class Request:
    """What is sent.

    Args:
        endpoint_name: endpoint.
        body: request.
        content_type: of the body.
        accept: content type wanted.
        variant: production variant; None lets the weights decide.
    """

    endpoint_name: str
    body: bytes
    content_type: str
    accept: str
    variant: str | None


def invoke(request: Request, access: Access) -> Answer:
    """Sends one request, once: a failure is reported, not retried.

    Args:
        request: endpoint, body and headers.
        access: clients of the endpoint's account.

    Raises:
        UserError: the body is too large, there is no such endpoint, the model answered an error, or
            there was no answer.
    """
    begun = time.perf_counter()
    with _located_errors(request.endpoint_name):
        response = _client(request, access).invoke_endpoint(**_parameters(request))
        answered = response["Body"].read()
    return _answer(response, answered, time.perf_counter() - begun)


def invoke_stream(request: Request, access: Access, show: Callable[[bytes], None]) -> StreamAnswer:
    """Sends one request like `invoke`, and shows the parts of the answer as they arrive.

    Args:
        request: the container decides by its body whether it streams.
        access: clients of the endpoint's account.
        show: called with every part.

    Raises:
        UserError: as for `invoke`, or the stream broke off.
    """
    begun = time.perf_counter()
    parts: list[bytes] = []
    first_part_seconds: float | None = None
    with _located_errors(request.endpoint_name):
        client = _client(request, access)
        response = client.invoke_endpoint_with_response_stream(**_parameters(request))
        with contextlib.closing(response["Body"]) as events:
            for event in events:
                part = event["PayloadPart"]["Bytes"]
                if first_part_seconds is None:
                    first_part_seconds = time.perf_counter() - begun
                parts.append(part)
                show(part)
    whole = _answer(response, b"".join(parts), time.perf_counter() - begun)
    return StreamAnswer(whole, len(parts), first_part_seconds or whole.latency_seconds)


# Any: boto3's clients and their answers have no types of their own.
def _client(request: Request, access: Access) -> Any:
    if len(request.body) > MAX_BODY_BYTES:
        raise UserError.of(
            Code.REQUEST_TOO_LARGE,
            f"the request is {len(request.body):,} bytes; SageMaker takes at most "
            f"{MAX_BODY_BYTES:,}",
            "Send less in one request: SageMaker sets this limit.",
        )
    once = Config(retries={"total_max_attempts": 1}, read_timeout=_READ_TIMEOUT_SECONDS)
    return access.client("sagemaker-runtime", once)


def _parameters(request: Request) -> dict[str, Any]:
    target = {"TargetVariant": request.variant} if request.variant else {}
    return {
        "EndpointName": request.endpoint_name,
        "Body": request.body,
        "ContentType": request.content_type,
        "Accept": request.accept,
        **target,
    }


def _answer(response: Any, body: bytes, latency_seconds: float) -> Answer:
    return Answer(
        body=body,
        content_type=response["ContentType"],
        variant=response["InvokedProductionVariant"],
        latency_seconds=latency_seconds,
        request_id=response["ResponseMetadata"]["RequestId"],
    )


@contextlib.contextmanager
def _located_errors(endpoint_name: str) -> Iterator[None]:
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
        raise refused(endpoint_name, error) from None
    except (ConnectionError, HTTPClientError) as error:
        raise UserError.of(
            Code.NO_ANSWER,
            f"no answer from {endpoint_name}: {error}",
            f"Look at it with `{status_command(endpoint_name)}`.",
        ) from None


def refused(endpoint_name: str, error: ClientError) -> UserError:
    """Returns the report of a call that SageMaker or the model refused."""
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
    return UserError.of(Code.INVOKE_REFUSED, f"{code}: {message}", look)


def _one_line(text: str) -> str:
    """Returns an error that is one text, as Triton has it; other JSON on one line."""
    try:
        content = json.loads(text)
    except ValueError:
        return text
    match content:
        case {"error": str(message), **rest} if not rest:
            return message
    return json.dumps(content, ensure_ascii=False)


def status_command(endpoint_name: str) -> str:
    """Returns the command that shows an endpoint's state and log."""
    model, _, environment = endpoint_name.rpartition("-")
    return f"slipway status {model} --env {environment}"
