"""The work of one asynchronous request: read it, ask the container, write the answer, tell topics.

SageMaker does each step as the execution role, so a role without a right fails the step here too.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from embedded_aws.clients import LoopbackClients
from embedded_aws.hosting.async_requests import AsyncRequest, AsyncSettings, Place
from embedded_aws.hosting.connections import (
    ContainerRefusedError,
    ContainerTimeoutError,
    ContainerUnreachableError,
)
from embedded_aws.hosting.fleets import Endpoint
from embedded_aws.hosting.metrics import NAMESPACE, MetricOwner, MetricPublisher
from embedded_aws.hosting.permissions import may
from embedded_aws.hosting.role_access import RoleAccess
from embedded_aws.hosting.variants import RunningVariant

logger = logging.getLogger(__name__)

# https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference.html: payloads up to 1 GB.
_LARGEST_INPUT_BYTES = 1_000_000_000
# The size from which boto3 and the AWS CLI upload in parts. AWS does not document SageMaker's.
_LARGEST_PART_BYTES = 8 * 1024 * 1024
# https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
_KEY_ACTIONS = ("kms:GenerateDataKey", "kms:Decrypt")
# A request during which the container dies is computed again. AWS does not document whether it does
# so, or how often. Without a limit, a request that kills its container would be computed for ever.
_MOST_ENDED_CONTAINERS = 3
_EXPIRED = "ClientError: The request expired in the queue after {seconds} seconds."


class ProcessingAgain(Exception):  # noqa: N818  # an outcome, not an error
    """The container died during the request or before it, so the request is computed again."""


class _FailedError(Exception):
    """The request failed.

    Args:
        reason: text of the notification.
        metric: a further metric that counts the failure, beside InvocationFailures; or empty.
        body: content of the failure's object.
    """

    def __init__(self, reason: str, metric: str = "", body: bytes = b"") -> None:
        super().__init__(reason)
        self.reason = reason
        self.metric = metric
        self.body = body or reason.encode()


class Processing:
    """Processes the requests of one endpoint.

    Args:
        endpoint: the endpoint.
        clients: calls S3 and SNS.
        metrics: records the endpoint's metrics.
        clock: returns seconds since the epoch.
        time_scale: factor on the time that a container may take.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        clients: LoopbackClients,
        metrics: MetricPublisher,
        clock: Callable[[], float],
        time_scale: float,
    ) -> None:
        self._endpoint = endpoint
        self._clients = clients
        self._metrics = metrics
        self._clock = clock
        self._time_scale = time_scale

    def process(self, request: AsyncRequest, variant: RunningVariant) -> None:
        """Answers a request: with an object, or with a failure.

        Args:
            request: to be answered.
            variant: computes the answer.

        Raises:
            ProcessingAgain: the container died, and may still be asked again.
        """
        settings = self._endpoint.async_settings
        if settings is None:
            raise ProcessingAgain  # the endpoint is being deleted
        backlog_seconds = max(self._clock() - request.received_seconds, 0.0)
        self._record(variant.name, {"TimeInBacklog": backlog_seconds * 1e6})
        access = RoleAccess(self._clients.client("s3", self._endpoint.region), variant.role)
        try:
            body = self._download(request, variant, access)
            try:
                content, content_type = self._ask(request, variant, body)
            except ContainerUnreachableError as error:
                # One that refused the connection has not received the request.
                if not isinstance(error, ContainerRefusedError):
                    request.ended_containers += 1
                if request.ended_containers < _MOST_ENDED_CONTAINERS:
                    line = f"[{request.inference_id}] is computed again: {error}"
                    logger.warning("%s %s", self._endpoint.name, line)
                    raise ProcessingAgain from None
                raise _FailedError(
                    f"ClientError: The container ended {request.ended_containers} times while it "
                    f"computed the request: {error}"
                ) from None
            place = settings.output.below(request.output_name)
            self._upload(place, content, content_type, settings, variant, access)
        except _FailedError as error:
            self._fail(request, variant.name, variant.role, settings, error)
            return
        self._record(variant.name, {"InvocationsProcessed": 1.0, **self._total(request)})
        answer = {"contentType": content_type, "outputLocation": place.uri}
        self._tell(
            settings.success_topic,
            variant.name,
            variant.role,
            self._message(request, "Completed", {"responseParameters": answer}),
        )

    def expire(self, request: AsyncRequest) -> None:
        """Fails a request that waited longer than its time to live."""
        settings, live = self._endpoint.async_settings, self._endpoint.live
        if settings is None or live is None:
            return
        variant = live.containers[0]
        reason = _EXPIRED.format(seconds=request.ttl_seconds)
        error = _FailedError(reason, "ExpiredRequests")
        self._fail(request, variant.name, variant.role, settings, error)

    def _download(
        self, request: AsyncRequest, variant: RunningVariant, access: RoleAccess
    ) -> bytes:
        begun = time.perf_counter()
        try:
            stream = access.read(request.source.bucket, request.source.key)
            body: bytes = stream.read(_LARGEST_INPUT_BYTES + 1)
            stream.close()
        except (ClientError, BotoCoreError) as error:
            raise _FailedError(
                f"ClientError: Could not download {request.source.uri}: {error}",
                "RequestDownloadFailures",
            ) from None
        if len(body) > _LARGEST_INPUT_BYTES:
            raise _FailedError(
                f"ClientError: {request.source.uri} is larger than {_LARGEST_INPUT_BYTES} bytes.",
                "RequestDownloadFailures",
            )
        seconds = time.perf_counter() - begun
        self._record(variant.name, {"RequestDownloadLatency": seconds * 1e6})
        return body

    def _ask(
        self, request: AsyncRequest, variant: RunningVariant, body: bytes
    ) -> tuple[bytes, str]:
        """Returns the container's answer and its content type."""
        begun = time.perf_counter()
        status = 0
        try:
            stream = variant.connections.open(
                body,
                request.headers,
                timeout_seconds=request.timeout_seconds * self._time_scale,
            )
            try:
                content = b"".join(stream.chunks())
                status = stream.status
                content_type = stream.headers.get("content-type", "")
            finally:
                stream.close()
        except ContainerTimeoutError:
            raise _FailedError(
                "ClientError: The container did not answer within the request's "
                f"{request.timeout_seconds} seconds."
            ) from None
        finally:
            self._record(
                variant.name,
                {
                    "ModelLatency": (time.perf_counter() - begun) * 1e6,
                    "Invocation4XXErrors": float(400 <= status < 500),
                    "Invocation5XXErrors": float(500 <= status < 600),
                },
            )
        if not 200 <= status < 300:
            kind = "client" if 400 <= status < 500 else "server"
            # As subscribers quote it: https://github.com/awslabs/osml-cdk-constructs and others.
            reason = (
                f"ClientError: Received {kind} error ({status}) from model. See the SageMaker "
                "Endpoint logs in your account for more information."
            )
            raise _FailedError(reason, body=content)
        return content, content_type

    def _upload(
        self,
        place: Place,
        content: bytes,
        content_type: str,
        settings: AsyncSettings,
        variant: RunningVariant,
        access: RoleAccess,
    ) -> None:
        begun = time.perf_counter()
        try:
            self._put(place, content, content_type, settings, access)
        except (ClientError, BotoCoreError) as error:
            raise _FailedError(
                f"ClientError: Could not upload {place.uri}: {error}", "ResponseUploadFailures"
            ) from None
        seconds = time.perf_counter() - begun
        self._record(variant.name, {"ResponseUploadLatency": seconds * 1e6})

    def _put(
        self,
        place: Place,
        content: bytes,
        content_type: str,
        settings: AsyncSettings,
        access: RoleAccess,
    ) -> None:
        access.require_writable(
            place.bucket,
            place.key,
            settings.key_id,
            in_parts=len(content) > _LARGEST_PART_BYTES,
        )
        more: dict[str, str] = {"ContentType": content_type} if content_type else {}
        if settings.key_id is not None:
            more |= {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": settings.key_id}
        s3 = self._clients.client("s3", self._endpoint.region)
        s3.put_object(Bucket=place.bucket, Key=place.key, Body=content, **more)

    def _fail(
        self,
        request: AsyncRequest,
        variant_name: str,
        role: str | None,
        settings: AsyncSettings,
        error: _FailedError,
    ) -> None:
        """Writes the failure's object, tells the topic, and counts."""
        logger.warning(
            "%s: [%s] failed: %s", self._endpoint.name, request.inference_id, error.reason
        )
        counts = {"InvocationFailures": 1.0, **({error.metric: 1.0} if error.metric else {})}
        self._record(variant_name, {**counts, **self._total(request)})
        more: dict[str, Any] = {"failureReason": error.reason}
        if settings.failure is not None:
            place = settings.failure.below(request.failure_name)
            access = RoleAccess(self._clients.client("s3", self._endpoint.region), role)
            try:
                self._put(place, error.body, "", settings, access)
                more["failureLocation"] = place.uri
            except (ClientError, BotoCoreError) as denied:
                logger.warning("%s was not written: %s", place.uri, denied)
        message = self._message(request, "Failed", more)
        self._tell(settings.error_topic, variant_name, role, message)

    def _tell(
        self, topic: str | None, variant_name: str, role: str | None, message: Mapping[str, Any]
    ) -> None:
        if topic is None:
            return
        try:
            sns = self._clients.client("sns", self._endpoint.region)
            if role is not None:
                _require_publisher(sns, role, topic)
            sns.publish(TopicArn=topic, Message=json.dumps(message))
        except (ClientError, BotoCoreError, PermissionError) as error:
            logger.warning("%s was not told: %s", topic, error)
            self._record(variant_name, {"NotificationFailures": 1.0})

    def _message(
        self, request: AsyncRequest, status: str, more: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns a notification in the form that its subscribers quote."""
        return {
            "awsRegion": self._endpoint.region,
            "eventTime": _moment(self._clock()),
            "receivedTime": _moment(request.received_seconds),
            "invocationStatus": status,
            "requestParameters": {
                "endpointName": self._endpoint.name,
                "inputLocation": request.source.uri,
            },
            **more,
            "inferenceId": request.inference_id,
            "eventVersion": "1.0",
            "eventSource": "aws:sagemaker",
            "eventName": "InferenceResult",
        }

    def _total(self, request: AsyncRequest) -> dict[str, float]:
        seconds = max(self._clock() - request.received_seconds, 0.0)
        return {"TotalProcessingTime": seconds * 1e3}

    def _record(self, variant_name: str, values: Mapping[str, float]) -> None:
        owner = MetricOwner(self._endpoint.region, NAMESPACE, self._endpoint.name, variant_name)
        self._metrics.record_values(owner, values)


def _require_publisher(sns: Any, role: str, topic: str) -> None:
    """Checks that a role may publish to a topic, and use the topic's own key.

    Raises:
        ClientError: the topic does not exist.
        PermissionError: the role lacks a right.
    """
    if not may(role, "sns:Publish", topic):
        raise PermissionError(f"{role} may not sns:Publish to {topic}")
    key_arn = sns.get_topic_attributes(TopicArn=topic)["Attributes"].get("KmsMasterKeyId")
    for action in _KEY_ACTIONS:
        # An alias, such as AWS's own alias/aws/sns, is not looked up.
        if key_arn and key_arn.startswith("arn:") and not may(role, action, key_arn):
            raise PermissionError(f"{role} may not {action} with {key_arn}")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
