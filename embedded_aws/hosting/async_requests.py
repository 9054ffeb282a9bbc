"""The request of InvokeEndpointAsync, and the settings of an asynchronous endpoint."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moto.core.utils import get_service_model

from embedded_aws.validation import validation_problem

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpointAsync.html
_DEFAULT_TTL_SECONDS = 21_600
_DEFAULT_TIMEOUT_SECONDS = 900
_S3_URI = re.compile(r"s3://(?P<bucket>[^/]+)/(?P<key>.*)")


class WrongRequestError(Exception):
    """The caller's request is wrong; the message says how."""


@dataclass(frozen=True)
class Place:
    """An object or a prefix in S3."""

    bucket: str
    key: str

    @classmethod
    def of(cls, uri: str) -> Place:
        """Reads an address of the form `s3://BUCKET/KEY`.

        Raises:
            WrongRequestError: it has another form, such as `https://`.
        """
        match = _S3_URI.fullmatch(uri)
        if match is None:
            raise WrongRequestError(f"The embedded AWS reads s3://BUCKET/KEY only, not {uri}.")
        return cls(match["bucket"], match["key"])

    def below(self, name: str) -> Place:
        """Returns the object of a name below this prefix."""
        prefix = self.key.rstrip("/")
        return Place(self.bucket, f"{prefix}/{name}" if prefix else name)

    @property
    def uri(self) -> str:
        """Returns the address."""
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True)
class AsyncSettings:
    """AsyncInferenceConfig of an endpoint configuration.

    Attributes:
        output: prefix of the answers.
        failure: prefix of the failures; None for no objects.
        key_id: KMS key that encrypts both; None for the bucket's own.
        success_topic: ARN of the topic for answers, or None.
        error_topic: ARN of the topic for failures, or None.
        concurrency: requests that one instance computes at a time.
    """

    output: Place
    failure: Place | None
    key_id: str | None
    success_topic: str | None
    error_topic: str | None
    concurrency: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> AsyncSettings:
        """Reads AsyncInferenceConfig.

        Raises:
            WrongRequestError: it has a setting that is not emulated.
        """
        output = config["OutputConfig"]
        notification = output.get("NotificationConfig", {})
        if "S3OutputPath" not in output:
            raise WrongRequestError("The embedded AWS needs an S3OutputPath.")
        if notification.get("IncludeInferenceResponseIn"):
            raise WrongRequestError("The embedded AWS does not emulate IncludeInferenceResponseIn.")
        failure = output.get("S3FailurePath")
        return cls(
            output=Place.of(output["S3OutputPath"]),
            failure=Place.of(failure) if failure else None,
            key_id=output.get("KmsKeyId"),
            success_topic=notification.get("SuccessTopic"),
            error_topic=notification.get("ErrorTopic"),
            # The API names no default: "If no value is provided, SageMaker chooses an optimal
            # value". One at a time is the most careful choice.
            concurrency=config.get("ClientConfig", {}).get(
                "MaxConcurrentInvocationsPerInstance", 1
            ),
        )


@dataclass
class AsyncRequest:
    """One request in a queue.

    Attributes:
        request_id: names the output object.
        inference_id: the caller's name for it.
        source: the object with the request.
        headers: headers for the container.
        ttl_seconds: longest time in the queue.
        timeout_seconds: longest time until the container has answered.
        received_seconds: time of arrival, in seconds since the epoch.
        ended_containers: how many containers ended while they computed it.
    """

    request_id: str
    inference_id: str
    source: Place
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

    Args:
        environ: the HTTP request.
        request_id: names the output object.
        received_seconds: time of arrival, in seconds since the epoch.

    Raises:
        WrongRequestError: a member is missing, out of bounds or not emulated.
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
        raise WrongRequestError(problem)
    for name in ("S3OutputPathExtension", "Filename"):
        if name in given:
            raise WrongRequestError(f"The embedded AWS does not emulate {name}.")
    if int(environ.get("CONTENT_LENGTH") or 0) or "InputLocation" not in given:
        raise WrongRequestError("The embedded AWS needs an InputLocation, and takes no Body.")
    source = Place.of(given["InputLocation"])
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
