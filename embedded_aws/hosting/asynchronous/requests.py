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
        request_id: names the output object.
        inference_id: the caller's name for it.
        ttl_seconds: longest time in the queue.
        timeout_seconds: longest time until the container has answered.
        ended_containers: how many containers ended while they computed it.
    """

    request_id: str
    inference_id: str
    source: S3Location
    headers: Mapping[str, str]
    ttl_seconds: int
    timeout_seconds: int
    received_seconds: float
    ended_containers: int = 0

    @property
    def output_name(self) -> str:
        """Returns the name of the answer's object."""
        return f"{self.request_id}.out"

    @property
    def failure_name(self) -> str:
        """Returns the name of the failure's object."""
        return f"{self.request_id}-error.out"


def read_request(
    environ: WSGIEnvironment, request_id: str, received_seconds: float
) -> AsyncRequest:
    """Reads InvokeEndpointAsync.

    Raises:
        ValueError: a member is missing, out of bounds or not emulated.
    """
    given: dict[str, Any] = {"EndpointName": "e"}
    shape = _shape()
    for name, member in shape.members.items():
        header = member.serialization.get("name", "")
        value = environ.get(f"HTTP_{header.upper().replace('-', '_')}")
        if value is not None:
            is_number = member.type_name == "integer" and value.isdecimal()
            given[name] = int(value) if is_number else value
    problem = validation_problem(shape, given)
    if problem is not None:
        raise ValueError(problem)
    for name in ("S3OutputPathExtension", "Filename"):
        if name in given:
            raise ValueError(f"The embedded AWS does not emulate {name}.")
    if int(environ.get("CONTENT_LENGTH") or 0) or "InputLocation" not in given:
        raise ValueError("The embedded AWS needs an InputLocation, and takes no Body.")
    source = S3Location.of(given["InputLocation"])
    headers = {
        "Content-Type": given.get("ContentType"),
        "Accept": given.get("Accept"),
        "X-Amzn-SageMaker-Custom-Attributes": given.get("CustomAttributes"),
        "X-Amzn-SageMaker-Inference-Id": given.get("InferenceId"),
    }
    return AsyncRequest(
        request_id=request_id,
        inference_id=given.get("InferenceId", request_id),
        source=source,
        headers={name: value for name, value in headers.items() if value is not None},
        ttl_seconds=given.get("RequestTTLSeconds", _DEFAULT_TTL_SECONDS),
        timeout_seconds=given.get("InvocationTimeoutSeconds", _DEFAULT_TIMEOUT_SECONDS),
        received_seconds=received_seconds,
    )


@functools.cache
def _shape() -> Any:
    return get_service_model("sagemaker-runtime").operation_model("InvokeEndpointAsync").input_shape
