"""One request to an asynchronous endpoint: its object, its place in the queue, and its answer."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, ConnectionError, HTTPClientError

from slipway.access import Access
from slipway.codes.code import Code
from slipway.config.sections.endpoint import AsyncInference
from slipway.errors import UserError
from slipway.operations.invoke.realtime import Request, refused, status_command
from slipway.s3_address import S3Address

LARGEST_BODY_BYTES = 1_000_000_000
"""https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference.html, read 2026-11-24."""
LARGEST_INLINE_BYTES = 128_000
"""botocore 1.44.5: the maximum of InvokeEndpointAsync's Body."""

_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 5.0
_FOLDER = "slipway-invoke"
# S3's answers about an object that is not there; the second one to a caller who may not list.
_MISSING = ("404", "NoSuchKey")
_UNLISTED = ("403", "AccessDenied")


@dataclass(frozen=True)
class AsyncAnswer:
    """The answer to a request that waited in a queue.

    The request's object stays; an inline request has none. The wait is from the call to the answer,
    on the client's clock.
    """

    body: bytes
    content_type: str
    inference_id: str
    input_location: str | None
    output_location: str
    waited_seconds: float


def invoke_async(
    request: Request,
    queue: AsyncInference,
    access: Access,
    *,
    limit_seconds: float,
    show: Callable[[float], None],
    is_inline: bool = False,
) -> AsyncAnswer:
    """Sends one request, once, and waits for its answer or its failure.

    `show` is called with the seconds that passed, before each further look. An inline request puts
    no object into S3. Raises `UserError` if the body is too large, a place is closed, the request
    failed, or there is no answer within the limit.
    """
    name = request.endpoint_name
    most = LARGEST_INLINE_BYTES if is_inline else LARGEST_BODY_BYTES
    if len(request.body) > most:
        raise UserError.of(
            Code.REQUEST_TOO_LARGE,
            f"the request is {len(request.body):,} bytes; SageMaker takes at most {most:,}"
            f"{' inline' if is_inline else ''}",
            "Leave out `--inline`, which sends it through S3."
            if is_inline
            else "Send less in one request: SageMaker sets this limit.",
        )
    s3, location = access.client("s3"), None
    _require_new_name(s3, request, queue)
    if not is_inline:
        location = _put(s3, request, queue)
    source = {"Body": request.body} if location is None else {"InputLocation": location}
    begun = time.perf_counter()
    try:
        sent = access.client("sagemaker-runtime").invoke_endpoint_async(
            EndpointName=name,
            ContentType=request.content_type,
            Accept=request.accept,
            **source,
            **request.members,
        )
    except ClientError as error:
        raise refused(name, error) from None
    output, failure = sent["OutputLocation"], sent.get("FailureLocation")
    pause_seconds = _SHORTEST_PAUSE_SECONDS
    while True:
        found = _read(s3, name, output)
        passed_seconds = time.perf_counter() - begun
        if found is not None:
            return AsyncAnswer(
                *found, sent["InferenceId"], location, output, waited_seconds=passed_seconds
            )
        if failure is not None and (failed := _read(s3, name, failure)) is not None:
            raise _failed(name, failed[0], failure)
        if passed_seconds >= limit_seconds:
            raise _unanswered(name, limit_seconds, output, failure)
        show(passed_seconds)
        time.sleep(min(pause_seconds, limit_seconds - passed_seconds))
        pause_seconds = min(pause_seconds * 1.5, _LONGEST_PAUSE_SECONDS)


# Any: boto3's clients have no types of their own.
def _require_new_name(s3: Any, request: Request, queue: AsyncInference) -> None:
    """Refuses a name that an answer has already, which would be taken for the new one."""
    name = request.members.get("Filename")
    if name is None:
        return
    folder = str(request.members.get("S3OutputPathExtension", "")).strip("/")
    answer = "/".join(filter(None, (queue.output.rstrip("/"), folder, str(name))))
    if _read(s3, request.endpoint_name, answer) is not None:
        raise UserError.of(
            Code.WRONG_OPTIONS,
            f"{answer} is an older answer",
            "Choose another `--filename` or `--output-path-extension`.",
        )


def _put(s3: Any, request: Request, queue: AsyncInference) -> str:
    location = f"{queue.input.removesuffix('/')}/{_FOLDER}/{uuid.uuid4()}"
    place = S3Address.of(location)
    with _closed_place(request.endpoint_name, "put the request into", location):
        s3.put_object(
            Bucket=place.bucket,
            Key=place.key,
            Body=request.body,
            ContentType=request.content_type,
            **_encryption(queue.input_key_arn),
        )
    return location


def _encryption(key_arn: str | None) -> dict[str, str]:
    if key_arn is None:
        return {}
    return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key_arn}


# Any: boto3's clients and their answers have no types of their own.
def _read(s3: Any, endpoint_name: str, location: str) -> tuple[bytes, str] | None:
    place = S3Address.of(location)
    with _closed_place(endpoint_name, "read", location):
        try:
            found = s3.get_object(Bucket=place.bucket, Key=place.key)
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                return None
            raise
        return found["Body"].read(), found["ContentType"]


@contextlib.contextmanager
def _closed_place(endpoint_name: str, what: str, location: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
        remedy = f"Look at the endpoint with `{status_command(endpoint_name)}`."
        if code in _UNLISTED:
            model = endpoint_name.rpartition("-")[0]
            remedy = (
                f"Use credentials that may: `slipway iam {model}` prints the rights. Without "
                "s3:ListBucket, S3 refuses an object that does not exist yet as well."
            )
        raise UserError.of(
            Code.INVOKE_REFUSED, f"cannot {what} {location}: {code}: {message}", remedy
        ) from None
    except (ConnectionError, HTTPClientError) as error:
        raise UserError.of(
            Code.NO_ANSWER,
            f"cannot {what} {location}: {error}",
            f"Look at the endpoint with `{status_command(endpoint_name)}`.",
        ) from None


def _failed(endpoint_name: str, body: bytes, location: str) -> UserError:
    return UserError.of(
        Code.ASYNC_FAILED,
        f"the request failed: {body.decode(errors='replace').strip() or 'no reason is given'}",
        f"The reason is in {location}. Look at the log with `{status_command(endpoint_name)}`.",
    )


def _unanswered(
    endpoint_name: str, limit_seconds: float, output: str, failure: str | None
) -> UserError:
    failures = f"A failure would be {failure}." if failure else "A failure would leave no object."
    return UserError.of(
        Code.ASYNC_NOT_ANSWERED,
        f"no answer within {limit_seconds:g} s; the request may still wait or be computed",
        f"Look for {output} later, or wait longer with `--wait`. {failures} "
        f"`{status_command(endpoint_name)}` shows the fleet.",
    )
