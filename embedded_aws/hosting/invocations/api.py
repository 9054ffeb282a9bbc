"""SageMaker's data plane: InvokeEndpoint, whole and streamed, proxied to a variant's container.

InvokeEndpointAsync puts a request into the endpoint's queue
(`slipway.embedded_aws.hosting.asynchronous`).

The request's body and headers reach the container unchanged. Errors become these statuses:

- ModelError (424): an answer that is not 2XX, no answer within the time, or an answer that is too
  large.
- InternalFailure (500): a connection that breaks.
- ServiceUnavailable (503): a container that is down.
- ValidationError (400): an error of the caller.

boto3 tries 500 and 503 again by itself. A stream that ends early, after its first part, reports
ModelStreamError in its last message.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slipway.embedded_aws.api import respond
from slipway.embedded_aws.hosting.asynchronous.requests import read_request
from slipway.embedded_aws.hosting.fleets.connections import (
    ContainerStream,
    ContainerTimeoutError,
    ContainerUnreachableError,
)
from slipway.embedded_aws.hosting.fleets.endpoint import Endpoint, Entered
from slipway.embedded_aws.hosting.fleets.running_variant import RunningVariant
from slipway.embedded_aws.hosting.fleets.serverless import ThrottledError
from slipway.embedded_aws.hosting.fleets.variant import VariantStartError
from slipway.embedded_aws.hosting.invocations import event_stream
from slipway.embedded_aws.hosting.invocations.component_targets import enter_component
from slipway.embedded_aws.hosting.invocations.errors import (
    InvocationError,
    endpoint_not_found,
    model_error,
    validation_error,
)
from slipway.embedded_aws.hosting.service import Hosting
from slipway.embedded_aws.hosting.telemetry.capture import CapturedVariant, Exchange, Side
from slipway.embedded_aws.hosting.telemetry.metrics import (
    NAMESPACE,
    Invocation,
    MetricOwner,
    MetricPublisher,
)
from slipway.embedded_aws.identity import ACCOUNT_ID

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# botocore's maximum of InvokeEndpoint's Body, in both directions.
MAX_BODY_BYTES = 6_291_456
# https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints-invoke.html
_MAX_SERVERLESS_BODY_BYTES = 4_194_304
# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html
RESPONSE_TIMEOUT_SECONDS = 60.0
# A slow shadow variant must not fill the memory, so further copies are left out. SageMaker names no
# limit of its own.
_MOST_COPIES = 64
_PATH = re.compile(r"/endpoints/(?P<name>[^/]+)/(?P<operation>[a-z-]+)")
_WHOLE, _STREAMED = "invocations", "invocations-response-stream"
_QUEUED = "async-invocations"
_TIMED_OUT = (
    "Your invocation timed out while waiting for a response from container primary. Review the "
    "latency metrics for each container in Amazon CloudWatch, resolve the issue, and try again."
)
# As users quote it: https://github.com/aws/amazon-sagemaker-examples/pull/2695. The embedded AWS
# appends what broke.
_BROKEN_CONNECTION = (
    "An exception occurred while sending request to model. Please contact customer support"
)
_NO_INSTANCE = (
    "No instance of the variant passes its health check; the container exited and is being "
    "restarted. Its log says why."
)
# WSGI's name of a request header -> the container's header.
_PASSED_ON = {
    "CONTENT_TYPE": "Content-Type",
    "HTTP_ACCEPT": "Accept",
    "HTTP_X_AMZN_SAGEMAKER_ACCEPT": "Accept",  # of a stream
    "HTTP_X_AMZN_SAGEMAKER_CUSTOM_ATTRIBUTES": "X-Amzn-SageMaker-Custom-Attributes",
    "HTTP_X_AMZN_SAGEMAKER_INFERENCE_ID": "X-Amzn-SageMaker-Inference-Id",
}
# Of DJL Serving: https://github.com/deepjavalibrary/djl-serving, serving/docs/adapters.md.
_ADAPTER = "X-Amzn-SageMaker-Adapter-Identifier"
_CUSTOM_ATTRIBUTES = "x-amzn-sagemaker-custom-attributes"
_TARGET_VARIANT = "HTTP_X_AMZN_SAGEMAKER_TARGET_VARIANT"
_REFUSED = {
    "HTTP_X_AMZN_SAGEMAKER_TARGET_MODEL": "multi-model endpoints (TargetModel)",
    "HTTP_X_AMZN_SAGEMAKER_TARGET_CONTAINER_HOSTNAME": (
        "several containers in one model (TargetContainerHostname)"
    ),
    "HTTP_X_AMZN_SAGEMAKER_ENABLE_EXPLANATIONS": "explainers (EnableExplanations)",
    "HTTP_X_AMZN_SAGEMAKER_SESSION_ID": "stateful sessions (SessionId)",
}


class InvocationApi:
    def __init__(
        self, hosting: Hosting, *, timeout_seconds: float = RESPONSE_TIMEOUT_SECONDS
    ) -> None:
        self._hosting = hosting
        self._timeout_seconds = timeout_seconds
        self._free_copies = threading.Semaphore(_MOST_COPIES)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request_id = ("x-amzn-RequestId", environ["slipway.request_id"])
        try:
            name, operation = _operation(environ)
            if operation == _QUEUED:
                return self._put_in_queue(environ, start_response, name)
            is_streamed = operation == _STREAMED
            invocation = self._begin(environ, name)
            try:
                answer = invocation.ask()
                body = None if is_streamed else invocation.whole(answer)
            except BaseException:
                invocation.finish()
                raise
        except InvocationError as error:
            content = json.dumps(error.body).encode()
            headers = [("Content-Type", "application/json"), request_id]
            if error.code is not None:
                headers.append(("x-amzn-ErrorType", error.code))
            return respond(start_response, error.status, headers, content)
        invoked = ("x-Amzn-Invoked-Production-Variant", invocation.entered.variant.name)
        headers = [invoked, request_id]
        if _CUSTOM_ATTRIBUTES in answer.headers:
            headers.append((_CUSTOM_ATTRIBUTES, answer.headers[_CUSTOM_ATTRIBUTES]))
        content_type = answer.headers.get("content-type")
        if body is not None:
            if content_type is not None:
                headers.append(("Content-Type", content_type))
            invocation.finish()
            self._capture(invocation, content_type, body)
            return respond(start_response, 200, headers, body)
        headers.append(("Content-Type", "application/vnd.amazon.eventstream"))
        if content_type is not None:
            headers.append(("X-Amzn-SageMaker-Content-Type", content_type))
        start_response("200 ", headers)
        return invocation.parts(answer)

    def _put_in_queue(
        self, environ: WSGIEnvironment, start_response: StartResponse, name: str
    ) -> Iterable[bytes]:
        """Answers InvokeEndpointAsync."""
        endpoint = self._hosting.endpoints.records.find(environ["slipway.region"], name)
        if endpoint is None or endpoint.serving is None:
            raise endpoint_not_found(name)
        settings = endpoint.async_settings
        if settings is None:
            raise validation_error(
                f"Endpoint {name} of account {ACCOUNT_ID} is not asynchronous: its configuration "
                "has no AsyncInferenceConfig."
            )
        request_id: str = environ["slipway.request_id"]
        try:
            request = read_request(environ, request_id, self._hosting.clock())
        except ValueError as error:
            raise validation_error(str(error)) from None
        self._hosting.queues.put(endpoint, request)
        headers = [
            ("Content-Type", "application/json"),
            ("x-amzn-RequestId", request_id),
            ("X-Amzn-SageMaker-OutputLocation", settings.output.below(request.output_name).uri),
        ]
        if settings.failure is not None:
            failure = settings.failure.below(request.failure_name)
            headers.append(("X-Amzn-SageMaker-FailureLocation", failure.uri))
        content = json.dumps({"InferenceId": request.inference_id}).encode()
        return respond(start_response, 202, headers, content)

    def _capture(self, invocation: _Invocation, content_type: str | None, answer: bytes) -> None:
        variant, config = invocation.entered.variant, invocation.entered.capture
        if config is None:
            return
        sent = invocation.headers
        self._hosting.captures.add(
            CapturedVariant(
                invocation.region, invocation.endpoint_name, variant.name, variant.role, config
            ),
            Exchange(
                Side(sent.get("Content-Type"), invocation.body),
                Side(content_type, answer),
                sent.get("X-Amzn-SageMaker-Inference-Id"),
                sent.get("X-Amzn-SageMaker-Custom-Attributes"),
            ),
        )

    def _begin(self, environ: WSGIEnvironment, name: str) -> _Invocation:
        begun = time.perf_counter()
        for header, feature in _REFUSED.items():
            if header in environ:
                raise validation_error(f"The embedded AWS does not emulate {feature}.")
        body = _body(environ)
        hosting, region = self._hosting, environ["slipway.region"]
        endpoint = hosting.endpoints.records.find(region, name)
        if endpoint is not None and endpoint.is_asynchronous:
            raise validation_error(
                f"Endpoint {name} of account {ACCOUNT_ID} is asynchronous: call "
                "InvokeEndpointAsync."
            )
        components = hosting.components.records
        entered = enter_component(endpoint, environ, components, hosting.metrics, body)
        if entered is None:
            entered = _enter(endpoint, name, environ.get(_TARGET_VARIANT))
        if len(body) > _most_bytes(entered):
            entered.variant.leave()
            # The words are in https://github.com/aws/sagemaker-python-sdk/issues/4271.
            raise validation_error(f"Request {environ['slipway.request_id']} has oversize body.")
        invocation = _Invocation(
            entered=entered,
            body=body,
            headers={
                header: environ[key] for key, header in _PASSED_ON.items() if environ.get(key)
            },
            region=region,
            endpoint_name=name,
            request_id=environ["slipway.request_id"],
            timeout_seconds=self._timeout_seconds,
            begun=begun,
            metrics=hosting.metrics,
        )
        if entered.adapter is not None:
            invocation.headers[_ADAPTER] = entered.adapter.identifier
        if entered.shadow is not None:
            self._send_to_shadow(invocation, entered.shadow)
        return invocation

    def _send_to_shadow(self, invocation: _Invocation, shadow: RunningVariant) -> None:
        if not self._free_copies.acquire(blocking=False):
            shadow.leave()
            return
        now = time.perf_counter()
        entered = invocation.entered._replace(variant=shadow, instance_count=shadow.instance_count)
        copy = replace(invocation, entered=entered, begun=now, sent=now)

        def send() -> None:
            try:
                # An error is only in the shadow variant's metrics and log.
                with contextlib.suppress(InvocationError):
                    answer = copy.ask()
                    content = copy.whole(answer)
                    self._capture(copy, answer.headers.get("content-type"), content)
            finally:
                copy.finish()
                self._free_copies.release()

        threading.Thread(target=send, name="shadow-copy", daemon=True).start()


@dataclass(kw_only=True)
class _Invocation:
    """One request at a variant's container, from `RunningVariant.enter` to `finish`."""

    entered: Entered
    body: bytes
    headers: dict[str, str]
    region: str
    endpoint_name: str
    request_id: str
    timeout_seconds: float
    begun: float
    metrics: MetricPublisher
    sent: float = field(default_factory=time.perf_counter)
    answered: float | None = None
    status: int = 0
    stream: ContainerStream | None = None

    def ask(self) -> ContainerStream:
        """Returns the beginning of a successful answer; raises `InvocationError` without one."""
        variant = self.entered.variant
        try:
            variant.wake()
        except VariantStartError as error:
            raise self._model_error(500, str(error)) from error
        self.sent = time.perf_counter()
        if not variant.is_healthy:
            raise InvocationError(503, "ServiceUnavailable", {"Message": _NO_INSTANCE})
        with self._named_errors():
            self.stream = variant.connections.open(
                self.body, self.headers, timeout_seconds=self.timeout_seconds
            )
            stream = self.stream
            if not 200 <= stream.status < 300:
                text = b"".join(stream.chunks()).decode(errors="replace")
                self.status = stream.status
                raise self._model_error(stream.status, text)
        return stream

    def whole(self, stream: ContainerStream) -> bytes:
        """Returns the answer's body; raises `InvocationError` if it is incomplete or too large."""
        with self._named_errors():
            body = b"".join(stream.chunks())
        self.answered = time.perf_counter()
        self.status = stream.status
        if len(body) > (most := _most_bytes(self.entered)):
            raise self._model_error(stream.status, f"The response exceeds {most} bytes.")
        return body

    def parts(self, stream: ContainerStream) -> Iterator[bytes]:
        """Yields the messages of a stream; closing it ends the invocation."""
        try:
            for chunk in stream.chunks():
                yield event_stream.event("PayloadPart", chunk)
            self.status = stream.status
        except ContainerTimeoutError:
            yield _stream_error("ModelInvocationTimeExceeded", _TIMED_OUT)
        except ContainerUnreachableError as error:
            yield _stream_error("StreamBroken", f"{_BROKEN_CONNECTION}. ({error})")
        finally:
            self.finish()

    def finish(self) -> None:
        now = time.perf_counter()
        if self.stream is not None:
            self.stream.close()
        variant = self.entered.variant
        own_metrics = variant.own_metrics()
        variant.leave()
        if self.entered.adapter is not None:
            self.entered.adapter.leave()
        model_seconds = (self.answered or now) - self.sent
        owner = MetricOwner(
            self.region,
            NAMESPACE,
            self.endpoint_name,
            variant.name,
            variant.config_name,
            self.entered.component_name,
            variant.source,
        )
        self.metrics.record(
            Invocation(
                owner,
                self.entered.instance_count,
                self.status,
                model_seconds,
                overhead_seconds=now - self.begun - model_seconds,
                published=self.entered.metrics,
                serverless=own_metrics,
            )
        )

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except ContainerTimeoutError:
            raise self._model_error(0, _TIMED_OUT) from None
        except ContainerUnreachableError as error:
            message = f"{_BROKEN_CONNECTION} regarding request {self.request_id}. ({error})"
            raise InvocationError(500, "InternalFailure", {"Message": message}) from error

    def _model_error(self, status: int, text: str) -> InvocationError:
        return model_error(status, text, self.region, self.endpoint_name)


def _most_bytes(entered: Entered) -> int:
    is_serverless = entered.variant.memory_bytes is not None
    return _MAX_SERVERLESS_BODY_BYTES if is_serverless else MAX_BODY_BYTES


def _enter(endpoint: Endpoint | None, name: str, target: str | None) -> Entered:
    try:
        entered = endpoint.enter(target) if endpoint is not None else None
    except ThrottledError:
        # The message is null: https://github.com/opensearch-project/ml-commons/issues/2429
        raise InvocationError(400, "ThrottlingException", {"message": None}) from None
    if entered is not None:
        return entered
    if endpoint is not None and endpoint.live is not None and target is not None:
        raise validation_error(
            f"Variant {target} of endpoint {name} of account {ACCOUNT_ID} not found."
        )
    raise endpoint_not_found(name)


def _operation(environ: WSGIEnvironment) -> tuple[str, str]:
    match = _PATH.fullmatch(environ.get("PATH_INFO", ""))
    if match is None or environ["REQUEST_METHOD"] != "POST":
        raise InvocationError(404, "UnknownOperationException", {"Message": "Unknown operation."})
    if match["operation"] not in (_WHOLE, _STREAMED, _QUEUED):
        raise validation_error(
            f"The embedded AWS does not emulate {match['operation']}; "
            "docs/embedded-aws/hosting.md lists what it does."
        )
    return match["name"], match["operation"]


def _stream_error(code: str, message: str) -> bytes:
    return event_stream.exception("ModelStreamError", {"ErrorCode": code, "Message": message})


def _body(environ: WSGIEnvironment) -> bytes:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > MAX_BODY_BYTES:
        # SageMaker's front end answers before any API code does, so there is no error type.
        raise InvocationError(
            413, None, {"message": f"HTTP content length exceeded {MAX_BODY_BYTES} bytes."}
        )
    body: bytes = environ["wsgi.input"].read(length)
    return body
