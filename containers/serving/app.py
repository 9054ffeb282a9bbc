"""SageMaker's HTTP contract: GET /ping and POST /invocations.

/ping answers 503 while the model loads and 200 once it is loaded. The port is open from the start,
so that a loading container can be told from a dead one. In both cases SageMaker waits for the first
200 within `ContainerStartupHealthCheckTimeoutInSeconds`.
(https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html)
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from containers.serving.connections import cancelled_without_client
from containers.serving.documentation import documentation_routes
from containers.serving.errors import (
    ErrorKind,
    MemoryShortError,
    NotReadyError,
    QueueFullError,
    RequestExpiredError,
    RequestTooLargeError,
    SlowRequestError,
    UnsupportedMediaTypeError,
    classify,
    error_body,
)
from containers.serving.events import MEDIA_TYPE as _STREAM_MEDIA_TYPE
from containers.serving.events import event
from containers.serving.logs import log_error, log_info, log_warning
from containers.serving.memory import read_body
from containers.serving.metrics import SECONDS_BUCKETS, Metrics
from containers.serving.pending_requests import BatchedOutputs
from containers.serving.service import InferenceService, ServiceState
from containers.serving.settings import ServingSettings

ResultT = TypeVar("ResultT")

# Any: outputs are passed on unread.
_StreamItem: TypeAlias = bytes | BatchedOutputs[Any]

_MEDIA_TYPE: Final = "application/json"
_REQUEST_ID_HEADER: Final = "X-Amzn-RequestId"
_INFERENCE_ID_HEADER: Final = "X-Amzn-SageMaker-Inference-Id"
# Limits the alphabet and length of a client's value, because it goes into the log and a header.
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# nginx's code for a client that closed the connection; only the log shows it.
_CLIENT_CLOSED_REQUEST: Final = 499
_CLIENT_DISCONNECTED: Final = "client_disconnected"


def create_app(
    service: InferenceService,
    settings: ServingSettings,
    document: Mapping[str, Any] | None = None,
) -> Starlette:
    """Returns the ASGI application that serves `service`, and /docs if there is a document."""
    endpoint = _Endpoint(service, settings)
    app = Starlette(
        routes=[
            Route("/ping", endpoint.ping, methods=["GET"]),
            Route("/invocations", endpoint.invocations, methods=["POST"]),
            *(documentation_routes(document) if document is not None else ()),
        ],
        exception_handlers={
            HTTPException: _answer_routing_error,
            Exception: lambda _request, error: _error_response(*classify(error)),
        },
    )
    # A redirect from /invocations/ would lose the body with most clients.
    app.router.redirect_slashes = False
    return app


class _RequestRecord:
    """The log line of one request, collected while the request is handled."""

    def __init__(self, request: Request) -> None:
        self._received_at = time.monotonic()
        self.request_id = _identifier(request, _REQUEST_ID_HEADER) or str(uuid.uuid4())
        self.fields: dict[str, object] = {"request_id": self.request_id}
        if inference_id := _identifier(request, _INFERENCE_ID_HEADER):
            self.fields["inference_id"] = inference_id
        self.batched: BatchedOutputs[Any] | None = None
        self._failure: Exception | None = None
        self.is_refused = False
        self._log = log_info

    # Any: outputs are passed on unread.
    def cost(self, batched: BatchedOutputs[Any]) -> None:
        self.batched = batched
        self.fields |= {
            "queue_milliseconds": round(batched.queue_milliseconds, 2),
            "compute_milliseconds": round(batched.compute_milliseconds, 2),
            "batch_size": batched.batch_size,
        }

    def failed(self, error: Exception) -> tuple[ErrorKind, str]:
        kind, message = classify(error)
        self._log = log_warning if kind.status < 500 else log_error
        self.is_refused = isinstance(error, QueueFullError)
        self._failure = error if kind.code == "internal_error" else None
        self.fields |= {"error_code": kind.code, "error_message": message}
        return kind, message

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._received_at

    def log(self, status: int) -> None:
        fields = self.fields | {"status": status, "milliseconds": round(self.seconds * 1000, 2)}
        self._log("request", error=self._failure, **fields)


class _RequestMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self._requests = metrics.labelled_counter(
            "slipway_requests",
            "Requests by status and error code; 499 is a client that went away.",
            ("status", "error_code"),
        )
        self._request_seconds, self.first_piece_seconds, self._queue_seconds, self._compute = (
            metrics.histogram(f"slipway_{name}_seconds", description, SECONDS_BUCKETS)
            for name, description in (
                ("request", "From a request's headers to the end of its answer."),
                ("first_piece", "From a request's headers to the first piece of a stream."),
                ("queue", "From being queued to the start of the first batch."),
                ("compute", "From the start of the first batch to the end of the last."),
            )
        )

    def request_ended(self, record: _RequestRecord, status: int) -> None:
        self._requests(status, record.fields.get("error_code", ""))
        self._request_seconds(record.seconds)
        if record.batched is not None:
            self._queue_seconds(record.batched.queue_milliseconds / 1000)
            self._compute(record.batched.compute_milliseconds / 1000)


class _Endpoint:
    def __init__(self, service: InferenceService, settings: ServingSettings) -> None:
        self._service = service
        self._settings = settings
        self._metrics = _RequestMetrics(service.metrics)

    async def ping(self, _request: Request) -> Response:
        if self._service.is_ready:
            return Response(status_code=200)
        error = NotReadyError(f"The server is {self._service.state.value}.")
        return _error_response(*classify(error))

    async def invocations(self, request: Request) -> Response:
        record = _RequestRecord(request)
        self._service.requests_in_flight += 1
        response: Response
        try:
            try:
                response = await self._answer(request, record)
            except QueueFullError:
                await self._pace_refusal(request)
                raise
        except ClientDisconnect:
            # This response is never sent, but Starlette requires an endpoint to return one.
            response = Response(status_code=_CLIENT_CLOSED_REQUEST)
            record.fields["error_code"] = _CLIENT_DISCONNECTED
        except Exception as error:
            response = _error_response(*record.failed(error))
            if _leaves_body_unread(error, request):
                response.headers["Connection"] = "close"
        response.headers[_REQUEST_ID_HEADER] = record.request_id
        if self._service.is_flooded() or self._service.state is ServiceState.DRAINING:
            # A server that drains would lose the next request on this connection. A flooded one
            # refuses a new connection at far less cost than a request on an old one.
            response.headers["Connection"] = "close"
        if not isinstance(response, _EventStream):
            self._finish(record, response.status_code)
        return response

    async def _pace_refusal(self, request: Request) -> None:
        """Waits until a request may be refused; `ClientDisconnect` if the client leaves first."""
        now = asyncio.get_running_loop().time()
        at = self._service.refusals.book(now)
        if at > now and self._service.is_ready:
            with cancelled_without_client(request.scope):
                await asyncio.sleep(at - now)

    async def _answer(self, request: Request, record: _RequestRecord) -> Response:
        timeout_seconds = self._settings.request_timeout_seconds
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        if self._service.state is ServiceState.LOADING:
            raise NotReadyError("The model is still loading.")
        _check_media_type(request)
        await self._service.until_room(deadline)
        try:
            async with asyncio.timeout_at(deadline):
                inputs = await self._receive(request, record)
                if self._service.is_streamed(inputs):
                    items = self._service.stream(inputs, deadline=deadline)
                    # Until the first piece can be sent, an error is answered with its own HTTP
                    # status.
                    with cancelled_without_client(request.scope):
                        first = await anext(items)
                    self._metrics.first_piece_seconds(record.seconds)
                    return _EventStream(first, items, record, self._finish)
                with cancelled_without_client(request.scope):
                    content, cost = await self._service.answer(inputs, deadline=deadline)
        except (TimeoutError, RequestExpiredError) as error:
            if "request_bytes" not in record.fields:
                raise SlowRequestError(
                    f"The body did not arrive within {timeout_seconds} seconds."
                ) from error
            raise RequestExpiredError(
                f"The answer was not ready within {timeout_seconds} seconds."
            ) from error
        record.cost(cost)
        return Response(content, media_type=_MEDIA_TYPE)

    async def _receive(self, request: Request, record: _RequestRecord) -> tuple[Any, ...]:
        """Reads and parses the body, which is freed afterwards."""
        others_in_flight = self._service.requests_in_flight - 1
        with self._service.memory_guard.body(others_in_flight) as reservation:
            body = await read_body(request, self._settings.max_request_bytes, reservation)
            record.fields["request_bytes"] = len(body)
            return await self._service.parse(body)

    def _finish(self, record: _RequestRecord, status: int) -> None:
        self._service.requests_in_flight -= 1
        self._metrics.request_ended(record, status)
        if record.is_refused:
            self._service.refusals.count()
        else:
            record.log(status)


class _EventStream(StreamingResponse):
    """The pieces of an answer, which are server-sent events; an error is the last event.

    `items` yields the pieces after `first`, then the cost of the answer. `finish` is called once at
    the end, whether the stream completed, failed or was abandoned.
    """

    def __init__(
        self,
        first: _StreamItem,
        items: AsyncGenerator[_StreamItem, None],
        record: _RequestRecord,
        finish: Callable[[_RequestRecord, int], None],
    ) -> None:
        self._first = first
        self._items = items
        self._record = record
        self._finish = finish
        self._has_ended = False
        self._sent = self._events()
        super().__init__(self._sent, media_type=_STREAM_MEDIA_TYPE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the events.

        The request is ended here and not in the generator, because a generator never starts if the
        client disconnects just before its first step.
        """
        try:
            await super().__call__(scope, receive, send)
        finally:
            # Otherwise the remaining pieces are computed until the garbage collector closes the
            # generator.
            await self._sent.aclose()
            await self._items.aclose()
            if not self._has_ended:
                self._record.fields["error_code"] = _CLIENT_DISCONNECTED
            self._finish(self._record, self.status_code)

    async def _events(self) -> AsyncGenerator[bytes, None]:
        try:
            item = self._first
            while not isinstance(item, BatchedOutputs):
                yield item
                # Sending to a disconnected client, and taking a piece that is ready, return without
                # waiting. This yields to the event loop, so that it notices the disconnection and
                # serves other requests.
                await asyncio.sleep(0)
                item = await anext(self._items)
            self._record.cost(item)
        except Exception as error:
            kind, message = self._record.failed(error)
            yield event(error_body(kind.code, message))
        self._has_ended = True


def _leaves_body_unread(error: Exception, request: Request) -> bool:
    """Returns whether the connection must be closed without reading the rest of the body.

    The rest of a body that is merely slow is still read for a while, see `connections`. A client
    that is cut off while it sends sees a reset connection instead of the answer.
    """
    is_early = isinstance(error, MemoryShortError | QueueFullError)
    is_not_asked = is_early and "expect" in request.headers
    return isinstance(error, RequestTooLargeError) or is_not_asked


def _check_media_type(request: Request) -> None:
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaTypeError(
            "The content encoding is not supported; send the body uncompressed."
        )
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
    body = error_body(kind.code, message)
    response = Response(body, status_code=kind.status, media_type=_MEDIA_TYPE)
    if kind.retry_after_seconds is not None:
        response.headers["Retry-After"] = str(kind.retry_after_seconds)
    return response


def _answer_routing_error(_request: Request, error: Exception) -> Response:
    """Answers an unknown path or method with the JSON body that every error has."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    code, message = {
        404: ("not_found", "The paths of this server are GET /ping and POST /invocations."),
        405: ("method_not_allowed", "Use GET /ping or POST /invocations."),
    }.get(status, ("invalid_request", "The request is not valid."))
    response = _error_response(ErrorKind(status, code), message)
    if isinstance(error, HTTPException):
        response.headers.update(error.headers or {})
    return response
