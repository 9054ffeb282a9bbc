"""The work of one asynchronous request: read it, ask the container, write the answer, tell topics.

SageMaker does each step as the execution role, so a role without a right fails the step here too.
"""

import base64
import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.asynchronous.requests import AsyncRequest
from slipway.embedded_aws.hosting.fleets.connections import (
    ContainerRefusedError,
    ContainerTimeoutError,
    ContainerUnreachableError,
)
from slipway.embedded_aws.hosting.fleets.endpoint import Endpoint
from slipway.embedded_aws.hosting.fleets.running_variant import RunningVariant
from slipway.embedded_aws.hosting.resources.async_settings import AsyncSettings, S3Location
from slipway.embedded_aws.hosting.telemetry.metrics import NAMESPACE, MetricOwner, MetricPublisher
from slipway.embedded_aws.iam.permissions import may
from slipway.embedded_aws.iam.s3_access import RoleAccess

logger = logging.getLogger(__name__)

# https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference.html: payloads up to 1 GB.
_LARGEST_INPUT_BYTES = 1_000_000_000
# The size from which boto3 and the AWS CLI upload in parts. AWS does not document SageMaker's.
_LARGEST_PART_BYTES = 8 * 1024 * 1024
# https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
# botocore, of IncludeInferenceResponseIn: "less than or equal to 128 KB".
_LARGEST_TOLD_BYTES = 128 * 1024
_KEY_ACTIONS = ("kms:GenerateDataKey", "kms:Decrypt")
# A request during which the container dies is computed again. AWS does not document whether it does
# so, or how often. Without a limit, a request that kills its container would be computed for ever.
_MOST_ENDED_CONTAINERS = 3


class ProcessingAgain(Exception):  # noqa: N818  # an outcome, not an error
    """The container died during the request or before it, so the request is computed again."""


class _FailedError(Exception):
    """The request failed.

    Args:
        reason: text of the notification, after `ClientError: `.
        metric: a further metric that counts the failure, beside InvocationFailures; or empty.
        body: content of the failure's object: the container's answer, or empty without one.
    """

    def __init__(self, reason: str, metric: str = "", body: bytes = b"") -> None:
        self.reason = f"ClientError: {reason}"
        super().__init__(self.reason)
        self.metric = metric
        self.response = body
        self.body = body or self.reason.encode()


@dataclass(frozen=True)
class Processing:
    endpoint: Endpoint
    clients: LoopbackClients
    metrics: MetricPublisher
    clock: Callable[[], float]
    time_scale: float

    def process(self, request: AsyncRequest, variant: RunningVariant) -> None:
        """Answers or fails a request; raises `ProcessingAgain` if it is to be computed again."""
        settings = self.endpoint.async_settings
        if settings is None:
            raise ProcessingAgain  # the endpoint is being deleted
        work = _Work(self, request, settings, variant)
        work.record({"TimeInBacklog": work.age_seconds() * 1e6})
        try:
            work.answer()
        except _FailedError as error:
            work.fail(error)

    def expire(self, request: AsyncRequest) -> None:
        settings, live = self.endpoint.async_settings, self.endpoint.live
        if settings is None or live is None:
            return
        reason = f"The request expired in the queue after {request.ttl_seconds} seconds."
        work = _Work(self, request, settings, live.containers[0])
        work.fail(_FailedError(reason, "ExpiredRequests"))


@dataclass(eq=False)
class _Work:
    _processing: Processing
    _request: AsyncRequest
    _settings: AsyncSettings
    _variant: RunningVariant

    def __post_init__(self) -> None:
        self._endpoint = self._processing.endpoint
        self._s3 = self._processing.clients.client("s3", self._endpoint.region)
        self._access = RoleAccess(self._s3, self._variant.role)

    def record(self, values: Mapping[str, float]) -> None:
        names = (self._endpoint.name, self._variant.name)
        self._processing.metrics.record_values(
            MetricOwner(self._endpoint.region, NAMESPACE, *names), values
        )

    def age_seconds(self) -> float:
        return max(self._processing.clock() - self._request.received_seconds, 0.0)

    def answer(self) -> None:
        request = self._request
        target = self._settings.output.below(request.output_name)
        body = self._download(request.source) if request.source is not None else request.body
        try:
            content, content_type = self._ask(body)
        except ContainerUnreachableError as error:
            # One that refused the connection has not received the request.
            if not isinstance(error, ContainerRefusedError):
                request.ended_containers += 1
            if request.ended_containers < _MOST_ENDED_CONTAINERS:
                line = f"[{request.inference_id}] is computed again: {error}"
                logger.warning("%s %s", self._endpoint.name, line)
                raise ProcessingAgain from None
            raise _FailedError(
                f"The container ended {request.ended_containers} times while it computed the "
                f"request: {error}"
            ) from None
        with self._step(f"upload {target.uri}", "ResponseUpload"):
            self._put(target, content, content_type)
        self._count("InvocationsProcessed")
        answer = {"contentType": content_type, "outputLocation": target.uri}
        more = {"responseParameters": answer, **self._response("SUCCESS", content)}
        self._tell(self._settings.success_topic, "Completed", more)

    def _download(self, source: S3Location) -> bytes:
        with self._step(f"download {source.uri}", "RequestDownload"):
            stream = self._access.read(source.bucket, source.key)
            body: bytes = stream.read(_LARGEST_INPUT_BYTES + 1)
            stream.close()
            if len(body) > _LARGEST_INPUT_BYTES:
                raise _FailedError(
                    f"{source.uri} is larger than {_LARGEST_INPUT_BYTES} bytes.",
                    "RequestDownloadFailures",
                )
        return body

    def _response(self, topic: str, content: bytes) -> dict[str, Any]:
        """Returns the container's answer for a topic's message, if the endpoint asks for it.

        The form is of a recorded message (2025-08) in the tests of AWS's sample of the Parakeet ASR
        model, read 2026-11-29. It says nothing of failures, which have the same form here.
        """
        is_told = f"{topic}_NOTIFICATION_TOPIC" in self._settings.with_response
        if not is_told or len(content) > _LARGEST_TOLD_BYTES:
            return {}
        told, text = "Check S3 path location(if configured)", base64.b64encode(content).decode()
        message = f"{told} or Cloudwatch for additional details."
        return {"responseBody": {"content": text, "message": message, "encoding": "BASE64"}}

    def fail(self, error: _FailedError) -> None:
        endpoint, request = self._endpoint.name, self._request
        logger.warning("%s: [%s] failed: %s", endpoint, request.inference_id, error.reason)
        self._count("InvocationFailures", *([error.metric] if error.metric else []))
        more: dict[str, Any] = {"failureReason": error.reason}
        if error.response:
            more |= self._response("ERROR", error.response)
        if self._settings.failure is not None:
            target = self._settings.failure.below(request.failure_name)
            try:
                self._put(target, error.body, "")
                more["failureLocation"] = target.uri
            except (ClientError, BotoCoreError) as denied:
                logger.warning("%s was not written: %s", target.uri, denied)
        self._tell(self._settings.error_topic, "Failed", more)

    @contextlib.contextmanager
    def _step(self, what: str, metric: str) -> Iterator[None]:
        """Measures a call of S3; names its failure."""
        begun = time.perf_counter()
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            raise _FailedError(f"Could not {what}: {error}", f"{metric}Failures") from None
        self.record({f"{metric}Latency": (time.perf_counter() - begun) * 1e6})

    def _ask(self, body: bytes) -> tuple[bytes, str]:
        request, begun = self._request, time.perf_counter()
        status = 0
        try:
            stream = self._variant.connections.open(
                body,
                request.headers,
                timeout_seconds=request.timeout_seconds * self._processing.time_scale,
            )
            with contextlib.closing(stream):
                content = b"".join(stream.chunks())
                status = stream.status
        except ContainerTimeoutError:
            raise _FailedError(
                "The container did not answer within the request's "
                f"{request.timeout_seconds} seconds."
            ) from None
        finally:
            self.record(
                {
                    "ModelLatency": (time.perf_counter() - begun) * 1e6,
                    "Invocation4XXErrors": float(400 <= status < 500),
                    "Invocation5XXErrors": float(500 <= status < 600),
                }
            )
        if not 200 <= status < 300:
            kind = "client" if 400 <= status < 500 else "server"
            # As subscribers quote it: https://github.com/awslabs/osml-cdk-constructs and others.
            reason = (
                f"Received {kind} error ({status}) from model. See the SageMaker Endpoint logs in "
                "your account for more information."
            )
            raise _FailedError(reason, body=content)
        return content, stream.headers.get("content-type", "")

    def _put(self, target: S3Location, content: bytes, content_type: str) -> None:
        key_id = self._settings.key_id
        in_parts = len(content) > _LARGEST_PART_BYTES
        self._access.require_writable(target.bucket, target.key, key_id, in_parts=in_parts)
        more: dict[str, str] = {"ContentType": content_type} if content_type else {}
        if key_id is not None:
            more |= {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key_id}
        self._s3.put_object(Bucket=target.bucket, Key=target.key, Body=content, **more)

    def _count(self, *metrics: str) -> None:
        self.record(
            {**dict.fromkeys(metrics, 1.0), "TotalProcessingTime": self.age_seconds() * 1e3}
        )

    def _tell(self, topic: str | None, status: str, more: Mapping[str, Any]) -> None:
        """Publishes a notification in the form that its subscribers quote."""
        if topic is None:
            return
        source = self._request.source
        message = {
            "awsRegion": self._endpoint.region,
            "eventTime": _moment(self._processing.clock()),
            "receivedTime": _moment(self._request.received_seconds),
            "invocationStatus": status,
            "requestParameters": {
                "endpointName": self._endpoint.name,
                **({"inputLocation": source.uri} if source is not None else {}),
            },
            **more,
            "inferenceId": self._request.inference_id,
            "eventVersion": "1.0",
            "eventSource": "aws:sagemaker",
            "eventName": "InferenceResult",
        }
        try:
            sns = self._processing.clients.client("sns", self._endpoint.region)
            if self._variant.role is not None:
                _require_publisher(sns, self._variant.role, topic)
            sns.publish(TopicArn=topic, Message=json.dumps(message))
        except (ClientError, BotoCoreError, PermissionError) as error:
            logger.warning("%s was not told: %s", topic, error)
            self.record({"NotificationFailures": 1.0})


def _require_publisher(sns: Any, role: str, topic: str) -> None:
    """Raises `PermissionError` if a role may not publish to a topic, or use the topic's own key."""
    if not may(role, "sns:Publish", topic):
        raise PermissionError(f"{role} may not sns:Publish to {topic}")
    key_arn = sns.get_topic_attributes(TopicArn=topic)["Attributes"].get("KmsMasterKeyId")
    for action in _KEY_ACTIONS:
        # An alias, such as AWS's own alias/aws/sns, is not looked up.
        if key_arn and key_arn.startswith("arn:") and not may(role, action, key_arn):
            raise PermissionError(f"{role} may not {action} with {key_arn}")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
