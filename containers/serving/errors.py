"""The errors of a request, and the single table from exception to HTTP answer.

The message of a `ServingError` reaches the client unchanged. It names what the client sent and the
limit, never a path, a class or a traceback. An exception that is not in the table is a bug of
Slipway. The client then gets a plain 500, and the log gets the traceback under the request's id.
"""

import json
import math
from dataclasses import dataclass, replace
from typing import Final


class ServingError(Exception):
    """The base of errors that a request is answered with; the message is written for the client."""


class InvalidRequestError(ServingError):
    """The body is not a request that the predictor accepts."""


class UnsupportedMediaTypeError(ServingError):
    """The body's content type is not a type that the predictor reads."""


class RequestTooLargeError(ServingError):
    """The body exceeds the configured number of bytes."""


class SlowRequestError(ServingError):
    """The client did not send its body within the request's time limit."""


class MemoryShortError(ServingError):
    """There is no memory for the request now; a later attempt may succeed."""


class QueueFullError(ServingError):
    """The queue cannot hold the request's inputs now; a later attempt may succeed.

    `retry_after_seconds` says when; 0 if that is unknown.
    """

    def __init__(self, message: str, *, retry_after_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NotReadyError(ServingError):
    """The model is still loading, or the process is stopping."""


class RequestExpiredError(ServingError):
    """The answer was not ready within the request's time limit."""


class ModelFailureError(ServingError):
    """The predictor raised; the cause is in the log and kept from the client."""


@dataclass(frozen=True)
class ErrorKind:
    """The HTTP answer to one kind of error; its `code` is stable across versions.

    `Retry-After` is None if a retry makes no sense.
    """

    status: int
    code: str
    retry_after_seconds: int | None = None


ERROR_KINDS: Final[dict[type[ServingError], ErrorKind]] = {
    InvalidRequestError: ErrorKind(400, "invalid_request"),
    SlowRequestError: ErrorKind(408, "request_timeout"),
    RequestTooLargeError: ErrorKind(413, "request_too_large"),
    UnsupportedMediaTypeError: ErrorKind(415, "unsupported_media_type"),
    ModelFailureError: ErrorKind(500, "model_failure"),
    QueueFullError: ErrorKind(503, "overloaded", retry_after_seconds=1),
    MemoryShortError: ErrorKind(503, "overloaded", retry_after_seconds=1),
    NotReadyError: ErrorKind(503, "not_ready", retry_after_seconds=1),
    RequestExpiredError: ErrorKind(504, "timeout"),
}

# By then another instance may serve the request.
_LONGEST_RETRY_AFTER_SECONDS: Final = 60

INTERNAL_ERROR: Final = ErrorKind(500, "internal_error")
INTERNAL_ERROR_MESSAGE: Final = "The server failed to answer; its log holds the request id."


def classify(error: Exception) -> tuple[ErrorKind, str]:
    """Returns the HTTP answer to `error`, and the message that the client may see."""
    kind = ERROR_KINDS.get(type(error)) if isinstance(error, ServingError) else None
    if kind is None:
        return INTERNAL_ERROR, INTERNAL_ERROR_MESSAGE
    if isinstance(error, QueueFullError):
        seconds = min(max(1, math.ceil(error.retry_after_seconds)), _LONGEST_RETRY_AFTER_SECONDS)
        kind = replace(kind, retry_after_seconds=seconds)
    return kind, str(error)


def error_body(code: str, message: str) -> bytes:
    return json.dumps({"error": {"code": code, "message": message}}).encode()
