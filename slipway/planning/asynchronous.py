"""The queue of an asynchronous endpoint: where its requests, answers, failures and notices lie."""

from dataclasses import dataclass

from slipway.config.schema import ModelConfig
from slipway.config.sections.endpoint import AsyncInference

ASYNC = "async"
BACKLOG_PER_INSTANCE = "ApproximateBacklogSizePerInstance"
"""The metric of target tracking: requests in the queue, divided by the number of instances."""
BACKLOG_WITHOUT_CAPACITY = "HasBacklogWithoutCapacity"
"""The metric that wakes a fleet: 1 while requests are in the queue of a fleet of zero."""
WAKE_POLICY = "wake"
"""Name of the step policy that starts the first instance."""


@dataclass(frozen=True)
class Prefix:
    """A prefix in S3.

    Args:
        bucket: its bucket.
        key: with its final slash, or empty for the whole bucket.
    """

    bucket: str
    key: str

    @property
    def uri(self) -> str:
        """Returns the address, without the final slash that SageMaker adds itself."""
        return f"s3://{self.bucket}/{self.key}".rstrip("/")


@dataclass(frozen=True)
class AsyncPlan:
    """The settings of an asynchronous endpoint.

    Args:
        input: requests that the execution role may read.
        output: answers.
        failure_output: failures; None if no object tells about a failure.
        success_topic_arn: topic that hears of answers, or None.
        error_topic_arn: topic that hears of failures, or None.
        input_key_arn: key of the requests; None for the bucket's own encryption.
        output_key_arn: key of answers and failures; None for the bucket's own encryption.
        topic_key_arn: key of the topics; None for topics without a key of their own.
        max_concurrent_invocations_per_instance: requests that an instance computes at a time.
    """

    input: Prefix
    output: Prefix
    failure_output: Prefix | None
    success_topic_arn: str | None
    error_topic_arn: str | None
    input_key_arn: str | None
    output_key_arn: str | None
    topic_key_arn: str | None
    max_concurrent_invocations_per_instance: int

    @property
    def written(self) -> tuple[Prefix, ...]:
        """Returns the prefixes that the execution role writes below."""
        return (self.output,) if self.failure_output is None else (self.output, self.failure_output)

    @property
    def buckets(self) -> tuple[str, ...]:
        """Returns each bucket once."""
        return tuple(dict.fromkeys(prefix.bucket for prefix in (self.input, *self.written)))

    @property
    def topic_arns(self) -> tuple[str, ...]:
        """Returns each topic once."""
        named = (self.success_topic_arn, self.error_topic_arn)
        return tuple(dict.fromkeys(arn for arn in named if arn is not None))

    @property
    def key_arns(self) -> tuple[str, ...]:
        """Returns each key once."""
        named = (self.input_key_arn, self.output_key_arn, self.topic_key_arn)
        return tuple(dict.fromkeys(arn for arn in named if arn is not None))


def async_plan(config: ModelConfig) -> AsyncPlan | None:
    """Returns the queue of an asynchronous endpoint; None for another endpoint."""
    section = config.endpoint.async_inference
    if config.endpoint.mode != ASYNC or section is None:
        return None
    return _plan(section)


def _plan(section: AsyncInference) -> AsyncPlan:
    return AsyncPlan(
        input=_prefix(section.input),
        output=_prefix(section.output),
        failure_output=None if section.failure_output is None else _prefix(section.failure_output),
        success_topic_arn=section.success_topic_arn,
        error_topic_arn=section.error_topic_arn,
        input_key_arn=section.input_key_arn,
        output_key_arn=section.output_key_arn,
        topic_key_arn=section.topic_key_arn,
        max_concurrent_invocations_per_instance=section.max_concurrent_invocations_per_instance,
    )


def _prefix(uri: str) -> Prefix:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return Prefix(bucket, key)
