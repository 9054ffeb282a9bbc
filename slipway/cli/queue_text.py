"""The queue of an asynchronous endpoint, as `slipway plan` tells it."""

from collections.abc import Iterator

from slipway.config.sections.endpoint import AsyncInference


def describe_queue(queue: AsyncInference) -> Iterator[tuple[str, str]]:
    """Yields labels and values: the mode, and where everything lies."""
    each = queue.max_concurrent_invocations_per_instance
    yield "mode", f"async: a queue, and {each} at a time on each instance"
    yield "requests", f"below {_uri(queue.input)}{_key('decrypted', queue.input_key_arn)}"
    yield "answers", f"below {_uri(queue.output)}{_key('encrypted', queue.output_key_arn)}"
    failures = queue.failure_output
    yield "failures", f"below {_uri(failures)}" if failures else "no objects"
    topics = {"answers": queue.success_topic_arn, "failures": queue.error_topic_arn}
    for what, arn in topics.items():
        if arn is not None:
            yield "notices", f"of {what} to {arn}{_key('encrypted', queue.topic_key_arn)}"


def _uri(prefix: str) -> str:
    return prefix.rstrip("/")


def _key(verb: str, arn: str | None) -> str:
    return "" if arn is None else f", {verb} with {arn}"
