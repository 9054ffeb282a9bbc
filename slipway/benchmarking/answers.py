"""What an answer says: whether it failed, how many tokens it has, and when its parts came."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from botocore.eventstream import EventStreamBuffer, ParserError

from slipway.benchmarking.connections import LoadError, Reply
from slipway.benchmarking.estimates import rounded
from slipway.benchmarking.load import Sample
from slipway.json_text import parse_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_EVENT_STREAM = "application/vnd.amazon.eventstream"
_MILLISECONDS = 1000.0


@dataclass(slots=True)
class Observed:
    """One request as the figures see it, and as `rows.jsonl` has it.

    `intended_milliseconds` counts from the trial's first request, and every latency from the
    intended sending. `kind` is a status, with AWS's name of the error, for counting. `failure` is
    None for an answer, `tokens` where nothing tells them, and `parts` 0 for a whole one.
    `between_tokens_milliseconds` is the mean time from one token of a stream to the next. Without a
    number of tokens, it is the time from one part to the next.
    """

    intended_milliseconds: float
    late_milliseconds: float
    latency_milliseconds: float
    kind: str = "200"
    failure: str | None = None
    variant: str = ""
    tokens: int | None = None
    parts: int = 0
    first_token_milliseconds: float | None = None
    between_tokens_milliseconds: float | None = None


def observe(
    sample: Sample, start: float, tokens_key: str | None, tokenizer: "Tokenizer | None"
) -> Observed:
    """Reads one answer; `start` is the intended time of the trial's first request.

    The key is that of the texts, or of the numbers, that tell the generated tokens. Without a
    tokenizer only numbers tell them.
    """
    found = Observed(
        _milliseconds(sample.intended_at - start),
        _milliseconds(sample.late_seconds),
        _milliseconds(sample.latency_seconds),
        failure=sample.failure,
    )
    reply = sample.reply
    if reply is None:
        found.kind = "no answer"
        return found
    found.variant = reply.headers.get("x-amzn-invoked-production-variant", "")
    if found.failure is not None:
        found.kind = _kind(reply)
        return found
    body = reply.body
    parts: list[tuple[float, bytes]] = []
    if reply.headers.get("content-type") == _EVENT_STREAM:
        try:
            parts = list(_stream_parts(reply.parts))
        except (LoadError, ParserError) as error:
            found.kind, found.failure = "broken stream", str(error)
            return found
        body = b"".join(part for _, part in parts)
    if tokens_key is not None:
        found.tokens = _count_tokens(body.decode("utf-8", "replace"), tokens_key, tokenizer)
    if parts:
        (first, _), (last, _) = parts[0], parts[-1]
        found.parts = len(parts)
        found.first_token_milliseconds = _milliseconds(first - sample.intended_at)
        steps = (len(parts) if found.tokens is None else found.tokens) - 1
        if steps > 0:
            found.between_tokens_milliseconds = _milliseconds((last - first) / steps)
    return found


def _milliseconds(seconds: float) -> float:
    return rounded(seconds * _MILLISECONDS)


def _kind(reply: Reply) -> str:
    """Returns the status with AWS's name of the error, such as `429 ThrottlingException`."""
    name = reply.headers.get("x-amzn-errortype", "").partition(":")[0]
    if not name:
        with suppress(ValueError):
            content = parse_json(reply.body)
            if isinstance(content, dict):
                name = str(content.get("__type", "")).rpartition("#")[2]
    return f"{reply.status} {name}".strip()


def is_expired(reply: Reply | None) -> bool:
    """Returns whether AWS refused a request because its credentials are no longer valid."""
    if reply is None or reply.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN):
        return False
    names = ("ExpiredToken", "UnrecognizedClient", "InvalidClientTokenId", "InvalidSignature")
    return any(name in _kind(reply) for name in names)


def _stream_parts(parts: list[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
    """Yields the payload parts of an event stream with the time at which each was complete.

    Raises LoadError if the stream tells an error, and ParserError if it is no event stream.
    """
    # botocore's types lack the events.
    buffer: Any = EventStreamBuffer()
    for at, data in parts:
        buffer.add_data(data)
        for event in buffer:
            if event.headers.get(":message-type") != "event":
                told = event.headers.get(":exception-type") or event.headers.get(":error-code")
                raise LoadError(f"{told}: {event.payload.decode('utf-8', 'replace')}")
            yield at, event.payload


def _count_tokens(text: str, key: str, tokenizer: "Tokenizer | None") -> int | None:
    """Returns the generated tokens that an answer tells; None where it tells none.

    The answer is JSON, or lines of JSON as of a stream, also with `data:` before each.
    """
    found = []
    for value in _values(_content(text), key):
        if isinstance(value, str) and tokenizer is not None:
            found.append(len(tokenizer.encode(value, add_special_tokens=False).ids))
        elif isinstance(value, int) and not isinstance(value, bool):
            found.append(value)
    return sum(found) if found else None


# Any: JSON.
def _content(text: str) -> Any:
    with suppress(ValueError):
        return parse_json(text)
    lines = []
    for line in text.splitlines():
        with suppress(ValueError):
            lines.append(parse_json(line.removeprefix("data:")))
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
