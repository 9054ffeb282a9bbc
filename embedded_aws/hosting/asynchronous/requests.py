"""The request of InvokeEndpointAsync."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moto.core.utils import get_service_model

from slipway.embedded_aws.hosting.resources.async_settings import S3Location
from slipway.embedded_aws.validation import validation_problem

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpointAsync.html
_DEFAULT_TTL_SECONDS = 21_600
_DEFAULT_TIMEOUT_SECONDS = 900


@dataclass
class AsyncRequest:
    """One request in a queue.

    Attributes:
        request_id: names the objects of the answer and the failure.
        source: the request's object; None for one that came with the call, as `body`.
        ttl_seconds: longest time in the queue.
        output_name: of the answer's object, below the endpoint's prefix.
        ended_containers: how many containers ended while they computed it.
    """

    request_id: str
    inference_id: str
    source: S3Location | None
    body: bytes
    headers: Mapping[str, str]
    ttl_seconds: int
    timeout_seconds: int
    received_seconds: float
    output_name: str
    ended_containers: int = 0

    @property
    def failure_name(self) -> str:
        return f"{self.request_id}-error.out"


def read_request(
    environ: WSGIEnvironment, request_id: str, received_seconds: float
) -> AsyncRequest:
    """Reads InvokeEndpointAsync; raises `ValueError` for what is missing, wrong or not emulated."""
    given: dict[str, Any] = {"EndpointName": "e"}
    shape = _shape()
    for name, member in shape.members.items():
        header = member.serialization.get("name", "")
        value = environ.get(f"HTTP_{header.upper().replace('-', '_')}")
        if value is not None:
            is_number = member.type_name == "integer" and value.isdecimal()
            given[name] = int(value) if is_number else value
    length = int(environ.get("CONTENT_LENGTH") or 0)
    most: int = shape.members["Body"].metadata["max"]
    problem = validation_problem(shape, given)
    if problem is None and length > most:
        problem = f"The Body has {length} bytes, and at most {most} are allowed."
    if problem is None and bool(length) == ("InputLocation" in given):
        # botocore 1.44.5: "mutually exclusive. Provide exactly one of them." AWS's words are not
        # public.
        problem = "Provide exactly one of Body and InputLocation."
    if problem is not None:
        raise ValueError(problem)
    location = given.get("InputLocation")
    folder = given.get("S3OutputPathExtension", "").strip("/")
    name = given.get("Filename", f"{request_id}.out")
    headers = {
        "Content-Type": given.get("ContentType"),
        "Accept": given.get("Accept"),
        "X-Amzn-SageMaker-Custom-Attributes": given.get("CustomAttributes"),
        "X-Amzn-SageMaker-Inference-Id": given.get("InferenceId"),
    }
    return AsyncRequest(
        request_id=request_id,
        inference_id=given.get("InferenceId", request_id),
        source=None if location is None else S3Location.of(location),
        body=environ["wsgi.input"].read(length),
        headers={name: value for name, value in headers.items() if value is not None},
        ttl_seconds=given.get("RequestTTLSeconds", _DEFAULT_TTL_SECONDS),
        timeout_seconds=given.get("InvocationTimeoutSeconds", _DEFAULT_TIMEOUT_SECONDS),
        received_seconds=received_seconds,
        output_name=f"{folder}/{name}" if folder else name,
    )


@functools.cache
def _shape() -> Any:
    return get_service_model("sagemaker-runtime").operation_model("InvokeEndpointAsync").input_shape
