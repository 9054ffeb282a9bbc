"""SageMaker's HTTP contract: GET /ping and POST /invocations.

/ping answers 503 while the model loads and 200 once it is loaded. The port is open from the
start, so that a loading container and a dead one look different; SageMaker waits for the first
200 within `ContainerStartupHealthCheckTimeoutInSeconds` either way.
(https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from typing import Any, Final, TypeAlias, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from containers.serving.errors import (
    ErrorKind,
    NotReadyError,
    RequestExpiredError,
    RequestTooLargeError,
    UnsupportedMediaTypeError,
    classify,
    error_body,
)
from containers.serving.logs import log_event
from containers.serving.service import InferenceService, ServiceState
from containers.serving.settings import ServingSettings
from containers.serving.tickets import BatchedOutputs

_logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

# Any: outputs are not looked at.
_StreamItem: TypeAlias = bytes | BatchedOutputs[Any]

_MEDIA_TYPE: Final = "application/json"
_STREAM_MEDIA_TYPE: Final = "text/event-stream"
_REQUEST_ID_HEADER: Final = "X-Amzn-RequestId"
_INFERENCE_ID_HEADER: Final = "X-Amzn-SageMaker-Inference-Id"
# What goes into the log and back into a header is held to a plain alphabet and a length.
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# nginx's code for a client that closed the connection; only the log sees it.
_CLIENT_CLOSED_REQUEST: Final = 499
# Reading what is refused costs no memory; this bounds the time.
_DISCARD_FACTOR: Final = 10


def create_app(service: InferenceService, settings: ServingSettings) -> Starlette:
    """Returns the ASGI application that serves `service`."""
    endpoint = _Endpoint(service, settings)
    return Starlette(
        routes=[
            Route("/ping", endpoint.ping, methods=["GET"]),
            Route("/invocations", endpoint.invocations, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _answer_routing_error},
    )


class _RequestRecord:
    """What the log says of one request."""

    def __init__(self, request: Request) -> None:
        self._received_at = time.monotonic()
        self.request_id = _identifier(request, _REQUEST_ID_HEADER) or str(uuid.uuid4())
        self.fields: dict[str, object] = {"request_id": self.request_id}
        if inference_id := _identifier(request, _INFERENCE_ID_HEADER):
            self.fields["inference_id"] = inference_id
        self._failure: Exception | None = None
        self._level = logging.INFO

    # Any: outputs are not looked at.
    def cost(self, batched: BatchedOutputs[Any]) -> None:
        """Says what an answer cost."""
        self.fields |= {
            "queue_milliseconds": round(batched.queue_milliseconds, 2),
            "compute_milliseconds": round(batched.compute_milliseconds, 2),
            "batch_size": batched.batch_size,
        }

    def client_disconnected(self) -> None:
        """Says that nobody got an answer, or not all of it."""
        self.fields["error_code"] = "client_disconnected"

    def failed(self, error: Exception) -> tuple[ErrorKind, str]:
        """Says why there is no answer; returns what the client is told."""
        kind, message = classify(error)
        self._level = logging.WARNING if kind.status < 500 else logging.ERROR
        self._failure = error if kind.code == "internal_error" else None
        self.fields |= {"error_code": kind.code, "error_message": message}
        return kind, message

    def log(self, status: int) -> None:
        """Writes the line."""
        milliseconds = round((time.monotonic() - self._received_at) * 1000, 2)
        fields = self.fields | {"status": status, "milliseconds": milliseconds}
        log_event(_logger, self._level, "request", error=self._failure, **fields)


class _Endpoint:
    def __init__(self, service: InferenceService, settings: ServingSettings) -> None:
        self._service = service
        self._settings = settings

    async def ping(self, _request: Request) -> Response:
        state = self._service.state
        if state is ServiceState.READY:
            return Response(status_code=200)
        kind, message = classify(NotReadyError(f"The server is {state.value}."))
        return _error_response(kind, message)

    async def invocations(self, request: Request) -> Response:
        record = _RequestRecord(request)
        self._service.requests_in_flight += 1
        response: Response
        try:
            response = await self._answer(request, record)
        except ClientDisconnect:
            # The response is never sent; the server needs one all the same.
            response = Response(status_code=_CLIENT_CLOSED_REQUEST)
            record.client_disconnected()
        except Exception as error:
            kind, message = record.failed(error)
            response = _error_response(kind, message)
            if isinstance(error, RequestTooLargeError):
                # The rest of the body is unread, and a client may send it without end.
                response.headers["Connection"] = "close"
        response.headers[_REQUEST_ID_HEADER] = record.request_id
        if not isinstance(response, StreamingResponse):
            self._finish(record, response.status_code)
        return response

    async def _answer(self, request: Request, record: _RequestRecord) -> Response:
        timeout_seconds = self._settings.request_timeout_seconds
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        if self._service.state is ServiceState.LOADING:
            raise NotReadyError("The model is still loading.")
        _check_media_type(request)
        try:
            async with asyncio.timeout_at(deadline):
                body = await _read_body(request, self._settings.max_request_bytes)
                record.fields["request_bytes"] = len(body)
                inputs = await self._service.parse(body)
                if self._service.is_streamed(inputs):
                    items = self._service.stream(inputs, deadline=deadline)
                    # Until there is something to send, an error is an answer like any other.
                    first = await _unless_disconnected(request, anext(items))
                    return StreamingResponse(
                        self._events(first, items, record), media_type=_STREAM_MEDIA_TYPE
                    )
                content, cost = await _unless_disconnected(
                    request, self._service.answer(inputs, deadline=deadline)
                )
        except (TimeoutError, RequestExpiredError) as error:
            raise RequestExpiredError(
                f"The answer was not ready within {timeout_seconds} seconds."
            ) from error
        record.cost(cost)
        return Response(content, media_type=_MEDIA_TYPE)

    async def _events(
        self, first: _StreamItem, items: AsyncGenerator[_StreamItem, None], record: _RequestRecord
    ) -> AsyncIterator[bytes]:
        """Yields the pieces of an answer as server-sent events, and an error as the last one.

        (https://html.spec.whatwg.org/multipage/server-sent-events.html)
        """
        try:
            item = first
            while not isinstance(item, BatchedOutputs):
                yield b"data:" + item + b"\n\n"
                item = await anext(items)
            record.cost(item)
        except (GeneratorExit, asyncio.CancelledError):
            record.client_disconnected()
            raise
        except Exception as error:
            kind, message = record.failed(error)
            yield b"data:" + error_body(kind.code, message) + b"\n\n"
        finally:
            # What is left would otherwise be computed until the garbage collector comes by.
            await items.aclose()
            self._finish(record, 200)

    def _finish(self, record: _RequestRecord, status: int) -> None:
        self._service.requests_in_flight -= 1
        record.log(status)


async def _unless_disconnected(request: Request, answering: Awaitable[ResultT]) -> ResultT:
    """Awaits `answering`, and cancels it when the client goes away.

    Raises:
        ClientDisconnect: the client closed the connection first.
    """
    work = asyncio.ensure_future(answering)
    # With the body read, the next message of the connection can only be its end.
    end_of_connection = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({work, end_of_connection}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientDisconnect
        return work.result()
    finally:
        work.cancel()
        end_of_connection.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await end_of_connection


async def _read_body(request: Request, max_bytes: int) -> bytes:
    """Reads the body, and keeps none of it past the limit.

    What exceeds the limit is read on and thrown away, up to `_DISCARD_FACTOR` times the limit:
    most clients send everything before they read, and one that is cut off while it sends sees a
    reset connection instead of the answer. One with more than that to send is cut off.

    Raises:
        RequestTooLargeError: Content-Length, or what was received, exceeds `max_bytes`.
        ClientDisconnect: the client closed the connection while sending.
    """
    too_large = RequestTooLargeError(f"The body exceeds the limit of {max_bytes} bytes.")
    declared_bytes = int(request.headers.get("content-length", "0"))
    if declared_bytes > _DISCARD_FACTOR * max_bytes:
        raise too_large
    body = bytearray()
    received_bytes = 0
    async for chunk in request.stream():
        received_bytes += len(chunk)
        if max(received_bytes, declared_bytes) <= max_bytes:
            body += chunk
        elif received_bytes > _DISCARD_FACTOR * max_bytes:
            break
    if received_bytes > max_bytes:
        raise too_large
    return bytes(body)


def _check_media_type(request: Request) -> None:
    """Takes application/json in UTF-8; a request that names no type is read as that.

    Raises:
        UnsupportedMediaTypeError: the Content-Type is another one.
    """
    content_type = request.headers.get("content-type")
    if content_type is None:
        return
    media_type, _, parameters = content_type.lower().partition(";")
    charset = parameters.replace('"', "").replace(" ", "")
    if media_type.strip() != _MEDIA_TYPE or charset not in ("", "charset=utf-8"):
        raise UnsupportedMediaTypeError(
            f"The content type is not supported; send {_MEDIA_TYPE} in UTF-8."
        )


def _identifier(request: Request, header: str) -> str | None:
    value = request.headers.get(header, "")
    return value if _IDENTIFIER.fullmatch(value) else None


def _error_response(kind: ErrorKind, message: str) -> Response:
    headers = (
        {} if kind.retry_after_seconds is None else {"Retry-After": str(kind.retry_after_seconds)}
    )
    return Response(
        error_body(kind.code, message),
        status_code=kind.status,
        headers=headers,
        media_type=_MEDIA_TYPE,
    )


def _answer_routing_error(_request: Request, error: Exception) -> Response:
    """Answers an unknown path or method in the body that every error has."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    code, message = {
        404: ("not_found", "The paths of this server are GET /ping and POST /invocations."),
        405: ("method_not_allowed", "Use GET /ping or POST /invocations."),
    }.get(status, ("invalid_request", "The request is not valid."))
    headers = error.headers if isinstance(error, HTTPException) else None
    return Response(
        error_body(code, message), status_code=status, headers=headers, media_type=_MEDIA_TYPE
    )
