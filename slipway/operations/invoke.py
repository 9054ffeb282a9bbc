"""One request to an endpoint, timed."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionError, HTTPClientError

from slipway.access import Access
from slipway.errors import UserError

# SageMaker's limits of a real-time request: botocore's maximum of Body, and
# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html
MAX_BODY_BYTES = 6_291_456
_READ_TIMEOUT_SECONDS = 70  # SageMaker's 60, and the way there and back


@dataclass(frozen=True)
class Answer:
    """What an endpoint answered.

    Args:
        body: as the container wrote it.
        content_type: of the body.
        variant: production variant that served it.
        latency_seconds: from the call to the last byte, on the client's clock, with the set-up
            of the connection.
        request_id: SageMaker's.
    """

    body: bytes
    content_type: str
    variant: str
    latency_seconds: float
    request_id: str


def invoke(
    endpoint_name: str,
    body: bytes,
    access: Access,
    *,
    content_type: str,
    accept: str,
    variant: str | None,
) -> Answer:
    """Sends one request, once: what fails is shown, not tried again.

    Args:
        endpoint_name: endpoint.
        body: request.
        access: to the endpoint's account.
        content_type: of the body.
        accept: content type wanted.
        variant: production variant; None lets the weights decide.

    Raises:
        UserError: the body is too large, there is no such endpoint, the model answered an error,
            or there was no answer.
    """
    if len(body) > MAX_BODY_BYTES:
        raise UserError.of(
            f"the request is {len(body):,} bytes; SageMaker takes at most {MAX_BODY_BYTES:,}",
            "Send less in one request, or use an asynchronous endpoint.",
        )
    once = Config(retries={"total_max_attempts": 1}, read_timeout=_READ_TIMEOUT_SECONDS)
    client = access.client("sagemaker-runtime", once)
    target = {"TargetVariant": variant} if variant else {}
    begun = time.perf_counter()
    try:
        response = client.invoke_endpoint(
            EndpointName=endpoint_name, Body=body, ContentType=content_type, Accept=accept, **target
        )
        answered = response["Body"].read()
    except ClientError as error:
        raise _refused(endpoint_name, error) from None
    except (ConnectionError, HTTPClientError) as error:
        raise UserError.of(
            f"no answer from {endpoint_name}: {error}",
            f"Look at it with `{_status_command(endpoint_name)}`.",
        ) from None
    return Answer(
        body=answered,
        content_type=response["ContentType"],
        variant=response["InvokedProductionVariant"],
        latency_seconds=time.perf_counter() - begun,
        request_id=response["ResponseMetadata"]["RequestId"],
    )


def _refused(endpoint_name: str, error: ClientError) -> UserError:
    response: dict[str, Any] = error.response  # type: ignore[assignment]  # ModelError adds members
    code, message = response["Error"]["Code"], response["Error"]["Message"]
    look = f"Look at its log with `{_status_command(endpoint_name)}`."
    if code == "ModelError":
        status = response.get("OriginalStatusCode") or "no status"
        original = _one_line(response.get("OriginalMessage", message))
        if isinstance(status, int) and 400 <= status < 500:
            return UserError.of(f"the model refused the request ({status}): {original}", look)
        return UserError.of(f"the model failed ({status}): {original}", look)
    if code in ("ValidationError", "ValidationException") and "not found" in message:
        model, _, environment = endpoint_name.rpartition("-")
        return UserError.of(
            message, f"`slipway status {model} --env {environment}` says what there is."
        )
    return UserError.of(f"{code}: {message}", look)


def _one_line(text: str) -> str:
    """The container's JSON on one line; any other text as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return text


def _status_command(endpoint_name: str) -> str:
    model, _, environment = endpoint_name.rpartition("-")
    return f"slipway status {model} --env {environment}"
