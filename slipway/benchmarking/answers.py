"""What an answer says: whether it failed, how many tokens it has, and when its parts came."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from botocore.eventstream import EventStreamBuffer, ParserError

from slipway.benchmarking.connections import Reply
from slipway.benchmarking.load import Sample
from slipway.json_text import parse_json

_EVENT_STREAM = "application/vnd.amazon.eventstream"
_NO_ANSWER = "no answer"

CountTokens = Callable[[str], int]


@dataclass(frozen=True)
class Observed:
    """One request as the figures see it.

    Args:
        latency_seconds: from the intended sending to the last byte.
        late_seconds: how late it was sent.
        kind: what became of it, for counting: a status, with AWS's name of the error.
        failure: why it failed; None for an answer.
        variant: the production variant that answered.
        tokens: number of generated tokens; None where nothing says.
        parts: of a streamed answer; 0 for a whole one.
        first_seconds: from the intended sending to the first part of a streamed answer.
        between_seconds: mean time from one token to the next in a streamed answer. Without a
            number of tokens, it is the time from one part to the next.
    """

    latency_seconds: float
    late_seconds: float
    kind: str
    failure: str | None
    variant: str = ""
    tokens: int | None = None
    parts: int = 0
    first_seconds: float | None = None
    between_seconds: float | None = None


class StreamError(Exception):
    """A stream broke off, or is no event stream."""


def observe(sample: Sample, tokens_key: str | None, count: CountTokens | None) -> Observed:
    """Reads one answer.

    Args:
        sample: the request and its answer.
        tokens_key: key of the answer's JSON whose texts or numbers tell the generated tokens.
        count: counts the tokens of a text; None where no tokenizer is known.
    """
    latency, late, reply = sample.latency_seconds, sample.late_seconds, sample.reply
    if reply is None:
        return Observed(latency, late, _NO_ANSWER, sample.error)
    variant = reply.headers.get("x-amzn-invoked-production-variant", "")
    if sample.failure is not None:
        return Observed(latency, late, _kind(reply), sample.failure, variant)
    if reply.headers.get("content-type") != _EVENT_STREAM:
        text = reply.body.decode("utf-8", "replace")
        return Observed(latency, late, "200", None, variant, count_tokens(text, tokens_key, count))
    try:
        parts = list(stream_parts(reply.parts))
    except StreamError as error:
        return Observed(latency, late, "broken stream", str(error), variant)
    text = b"".join(part for _, part in parts).decode("utf-8", "replace")
    tokens = count_tokens(text, tokens_key, count)
    first = parts[0][0] - sample.intended_at if parts else None
    steps = (tokens if tokens is not None else len(parts)) - 1
    between = (parts[-1][0] - parts[0][0]) / steps if parts and steps > 0 else None
    return Observed(latency, late, "200", None, variant, tokens, len(parts), first, between)


def _kind(reply: Reply) -> str:
    """Returns the status with AWS's name of the error, such as `429 ThrottlingException`."""
    name = reply.headers.get("x-amzn-errortype", "").partition(":")[0]
    if not name:
        try:
            content = parse_json(reply.body)
        except ValueError:
            content = None
        if isinstance(content, dict) and isinstance(content.get("__type"), str):
            name = content["__type"].rpartition("#")[2]
    return f"{reply.status} {name}".strip()


def is_expired(reply: Reply | None) -> bool:
    """Returns whether AWS refused a request because its credentials are no longer valid."""
    if reply is None or reply.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN):
        return False
    names = ("ExpiredToken", "UnrecognizedClient", "InvalidClientTokenId", "InvalidSignature")
    return any(name in _kind(reply) for name in names)


def stream_parts(parts: list[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
    """Yields the payload parts of an event stream with the time at which each was complete.

    Raises:
        StreamError: the stream tells an error, or cannot be read.
    """
    buffer = EventStreamBuffer()
    try:
        for at, data in parts:
            buffer.add_data(data)
            # botocore's types lack the events.
            events: Any = buffer
            for event in events:
                if event.headers.get(":message-type") != "event":
                    told = event.headers.get(":exception-type") or event.headers.get(":error-code")
                    raise StreamError(f"{told}: {event.payload.decode('utf-8', 'replace')}")
                yield at, event.payload
    except ParserError as error:
        raise StreamError(str(error)) from None


def count_tokens(text: str, key: str | None, count: CountTokens | None) -> int | None:
    """Returns the generated tokens that an answer tells; None where it tells none.

    The answer is JSON, or lines of JSON as of a stream, also with `data:` before each.
    """
    if key is None:
        return None
    total: int | None = None
    for value in _values(_content(text), key):
        if isinstance(value, str) and count is not None:
            total = (total or 0) + count(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            total = (total or 0) + value
    return total


# Any: JSON.
def _content(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        pass
    lines = []
    for line in text.splitlines():
        try:
            lines.append(json.loads(line.removeprefix("data:")))
        except (ValueError, RecursionError):
            continue
    return lines


def _values(content: Any, key: str) -> Iterator[Any]:
    """Yields each value under a key, at any depth; of a list each item."""
    if isinstance(content, list):
        for item in content:
            yield from _values(item, key)
    elif isinstance(content, dict):
        for name, value in content.items():
            if name == key:
                yield from value if isinstance(value, list) else (value,)
            else:
                yield from _values(value, key)
