"""SageMaker's data plane: InvokeEndpoint, proxied to a variant's container.

The request's body and headers reach the container as they came. An answer that is not 2XX, none
within the time, or one that is too large becomes ModelError (424); a connection that breaks becomes
InternalFailure (500); a container that is down ServiceUnavailable (503); what the caller does wrong
ValidationError (400). boto3 tries 500 and 503 again by itself.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from embedded_aws.hosting.connections import (
    ContainerResponse,
    ContainerTimeoutError,
    ContainerUnreachableError,
)
from embedded_aws.hosting.metrics import Invocation
from embedded_aws.hosting.service import Hosting
from embedded_aws.hosting.variants import RunningVariant
from embedded_aws.identity import ACCOUNT_ID

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# botocore's maximum of InvokeEndpoint's Body, in both directions.
MAX_BODY_BYTES = 6_291_456
# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html
RESPONSE_TIMEOUT_SECONDS = 60.0
_MESSAGE_CHARACTERS = 2048  # botocore's maximum of Message and OriginalMessage
_PATH = re.compile(r"/endpoints/(?P<name>[^/]+)/(?P<operation>[a-z-]+)")
_OPERATIONS = {
    "async-invocations": "InvokeEndpointAsync",
    "invocations-response-stream": "InvokeEndpointWithResponseStream",
}
_TIMED_OUT = (
    "Your invocation timed out while waiting for a response from container primary. Review the "
    "latency metrics for each container in Amazon CloudWatch, resolve the issue, and try again."
)
# As users quote it: https://github.com/aws/amazon-sagemaker-examples/pull/2695. Ours goes on with
# what broke.
_BROKEN_CONNECTION = (
    "An exception occurred while sending request to model. Please contact customer support"
)
_NO_INSTANCE = (
    "No instance of the variant passes its health check; the container exited and is being "
    "restarted. Its log says why."
)
# WSGI's name of a request header to the header the container gets.
_PASSED_ON = {
    "CONTENT_TYPE": "Content-Type",
    "HTTP_ACCEPT": "Accept",
    "HTTP_X_AMZN_SAGEMAKER_CUSTOM_ATTRIBUTES": "X-Amzn-SageMaker-Custom-Attributes",
    "HTTP_X_AMZN_SAGEMAKER_INFERENCE_ID": "X-Amzn-SageMaker-Inference-Id",
}
_CUSTOM_ATTRIBUTES = "x-amzn-sagemaker-custom-attributes"
_TARGET_VARIANT = "HTTP_X_AMZN_SAGEMAKER_TARGET_VARIANT"
_REFUSED = {
    "HTTP_X_AMZN_SAGEMAKER_TARGET_MODEL": "multi-model endpoints (TargetModel)",
    "HTTP_X_AMZN_SAGEMAKER_TARGET_CONTAINER_HOSTNAME": (
        "several containers in one model (TargetContainerHostname)"
    ),
    "HTTP_X_AMZN_SAGEMAKER_ENABLE_EXPLANATIONS": "explainers (EnableExplanations)",
    "HTTP_X_AMZN_SAGEMAKER_INFERENCE_COMPONENT": "inference components (InferenceComponentName)",
    "HTTP_X_AMZN_SAGEMAKER_SESSION_ID": "stateful sessions (SessionId)",
}


class _InvocationError(Exception):
    def __init__(self, status: int, code: str | None, body: Mapping[str, Any]) -> None:
        super().__init__(body)
        self.status = status
        self.code = code
        self.body = body


def _validation_error(message: str) -> _InvocationError:
    return _InvocationError(400, "ValidationError", {"Message": message})


class InvocationApi:
    """The WSGI application of the data plane.

    Args:
        hosting: the control plane, which knows the endpoints.
    """

    def __init__(self, hosting: Hosting) -> None:
        self._hosting = hosting
        self._timeout_seconds = RESPONSE_TIMEOUT_SECONDS * hosting.time_scale

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request (PEP 3333)."""
        request_id = ("x-amzn-RequestId", environ["slipway.request_id"])
        try:
            variant_name, answer = self._invoke(environ)
        except _InvocationError as error:
            body = json.dumps(error.body).encode()
            headers = [("Content-Type", "application/json"), request_id]
            if error.code is not None:
                headers.append(("x-amzn-ErrorType", error.code))
            return _respond(start_response, error.status, headers, body)
        headers = [("x-Amzn-Invoked-Production-Variant", variant_name), request_id]
        if "content-type" in answer.headers:
            headers.append(("Content-Type", answer.headers["content-type"]))
        if _CUSTOM_ATTRIBUTES in answer.headers:
            headers.append((_CUSTOM_ATTRIBUTES, answer.headers[_CUSTOM_ATTRIBUTES]))
        return _respond(start_response, 200, headers, answer.body)

    def _invoke(self, environ: WSGIEnvironment) -> tuple[str, ContainerResponse]:
        begun = time.perf_counter()
        name = _endpoint_name(environ)
        for header, feature in _REFUSED.items():
            if header in environ:
                raise _validation_error(f"The embedded AWS does not emulate {feature}.")
        body = _body(environ)
        region: str = environ["slipway.region"]
        endpoint = self._hosting.find_endpoint(region, name)
        target = environ.get(_TARGET_VARIANT)
        variant = endpoint.enter(target) if endpoint is not None else None
        if variant is None:
            if endpoint is not None and endpoint.live is not None and target is not None:
                raise _validation_error(
                    f"Variant {target} of endpoint {name} of account {ACCOUNT_ID} not found."
                )
            raise _validation_error(f"Endpoint {name} of account {ACCOUNT_ID} not found.")
        sent = answered = time.perf_counter()
        status = 0
        try:
            try:
                if not variant.is_healthy:
                    raise _InvocationError(503, "ServiceUnavailable", {"Message": _NO_INSTANCE})
                answer = self._ask(variant, environ, body, region, name)
            finally:
                answered = time.perf_counter()
                variant.leave()
            status = answer.status
            return variant.name, _checked(answer, region, name)
        finally:
            model_seconds = answered - sent
            overhead_seconds = time.perf_counter() - begun - model_seconds
            self._hosting.metrics.record(
                Invocation(
                    region=region,
                    endpoint_name=name,
                    variant_name=variant.name,
                    instance_count=variant.instance_count,
                    status=status,
                    model_seconds=model_seconds,
                    overhead_seconds=overhead_seconds,
                )
            )

    def _ask(
        self,
        variant: RunningVariant,
        environ: WSGIEnvironment,
        body: bytes,
        region: str,
        name: str,
    ) -> ContainerResponse:
        headers = {header: environ[key] for key, header in _PASSED_ON.items() if environ.get(key)}
        try:
            return variant.connections.invoke(body, headers, timeout_seconds=self._timeout_seconds)
        except ContainerTimeoutError:
            raise _model_error(0, _TIMED_OUT, region, name) from None
        except ContainerUnreachableError as error:
            request_id = environ["slipway.request_id"]
            message = f"{_BROKEN_CONNECTION} regarding request {request_id}. ({error})"
            raise _InvocationError(500, "InternalFailure", {"Message": message}) from error


def _endpoint_name(environ: WSGIEnvironment) -> str:
    match = _PATH.fullmatch(environ.get("PATH_INFO", ""))
    if match is None or environ["REQUEST_METHOD"] != "POST":
        raise _InvocationError(404, "UnknownOperationException", {"Message": "Unknown operation."})
    if match["operation"] != "invocations":
        operation = _OPERATIONS.get(match["operation"], match["operation"])
        raise _validation_error(
            f"The embedded AWS does not emulate {operation}; "
            "docs/embedded-aws/hosting.md lists what it does."
        )
    return match["name"]


def _body(environ: WSGIEnvironment) -> bytes:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > MAX_BODY_BYTES:
        # SageMaker's front end answers before any API code does, hence no error type.
        raise _InvocationError(
            413, None, {"message": f"HTTP content length exceeded {MAX_BODY_BYTES} bytes."}
        )
    body: bytes = environ["wsgi.input"].read(length)
    return body


def _checked(answer: ContainerResponse, region: str, name: str) -> ContainerResponse:
    if not 200 <= answer.status < 300:
        text = answer.body.decode(errors="replace")
        raise _model_error(answer.status, text, region, name)
    if len(answer.body) > MAX_BODY_BYTES:
        raise _model_error(
            answer.status, f"The response exceeds {MAX_BODY_BYTES} bytes.", region, name
        )
    return answer


def _model_error(status: int, text: str, region: str, name: str) -> _InvocationError:
    group = f"/aws/sagemaker/Endpoints/{name}"
    kind = "client" if 400 <= status < 500 else "server"
    where = (
        f"https://{region}.console.aws.amazon.com/cloudwatch/home?region={region}"
        f"#logEventViewer:group={group} in account {ACCOUNT_ID} for more information."
    )
    frame = f'Received {kind} error ({status}) from primary with message "". See {where}'
    quoted = text[: max(_MESSAGE_CHARACTERS - len(frame), 0)]
    return _InvocationError(
        424,
        "ModelError",
        {
            "Message": frame.replace('message "', f'message "{quoted}', 1),
            "OriginalStatusCode": status,
            "OriginalMessage": text[:_MESSAGE_CHARACTERS],
            "LogStreamArn": f"arn:aws:logs:{region}:{ACCOUNT_ID}:log-group:{group}",
        },
    )


def _respond(
    start_response: StartResponse, status: int, headers: list[tuple[str, str]], body: bytes
) -> Iterable[bytes]:
    start_response(f"{status} ", [*headers, ("Content-Length", str(len(body)))])
    return [body]
