"""Reads captured requests and answers in S3, as SageMaker's data capture writes them.

https://docs.aws.amazon.com/sagemaker/latest/dg/model-monitor-data-capture-endpoint.html has the
folders and the lines (read 2026-11-24). Bodies may be large and many, so they are kept as digests,
and the few that are shown are read again.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from slipway.access import paged
from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError
from slipway.json_text import parse_json

_MOST_PROBLEMS: Final = 20
# Whether AWS names a file after its first or its last line is not documented.
_FILE_SPAN: Final = timedelta(hours=1)
# The protocol of OpenAI gives each answer a name and a time of its own.
_OWN_KEYS: Final = ("id", "created")
_KINDS: Final = {
    str: "text", int: "number", float: "number", bool: "true or false", type(None): "null",
}  # fmt: skip


@dataclass(frozen=True)
class Captured:
    """Digests of a captured request, its answer, and the answer's keys and kinds of values.

    The form is None where an empty list or a null leaves it open. Where the request or the answer
    alone was captured, there is no id and no request to pair the record by.
    """

    # Key of the object, and line.
    place: tuple[str, int]
    at: datetime
    inference_id: str | None
    request: bytes | None
    answer: bytes
    form: bytes | None


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error) if isinstance(error, ValueError) else "its values have other types"


# Any: boto3's clients, and JSON of any form.
def read_captured(s3: Any, bucket: str, folder: str, since: datetime) -> list[Captured]:
    """Returns what was captured since a time, in its order; raises `UserError` for other lines."""
    found, problems = list[Captured](), list[Problem]()
    start = f"{folder}{since - _FILE_SPAN:%Y/%m/%d/%H}"
    for each in paged(
        s3, "list_objects_v2", "Contents", Bucket=bucket, Prefix=folder, StartAfter=start
    ):
        for number, line in _lines(s3, bucket, each["Key"]):
            try:
                found.append(_captured((each["Key"], number), line))
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
                message = f"the line is no captured request with its answer: {_reason(error)}"
                remedy = "Look at later lines with a shorter `--since`, or remove the object."
                place = Location(f"s3://{bucket}/{each['Key']}", number, 1)
                problem = Problem(Code.CAPTURED_UNREADABLE, Kind.SHAPE, message, remedy)
                problems.append(problem.at(place))
    if problems:
        raise UserError(problems[:_MOST_PROBLEMS])
    return sorted((each for each in found if each.at >= since), key=lambda each: each.at)


def read_answer(s3: Any, bucket: str, place: tuple[str, int]) -> Any:
    """Returns the content of an answer: the values of JSON, or else its text."""
    line = next(line for number, line in _lines(s3, bucket, place[0]) if number == place[1])
    return _content(_body(parse_json(line)["captureData"]["endpointOutput"]))


def _lines(s3: Any, bucket: str, key: str) -> Iterator[tuple[int, bytes]]:
    return enumerate(s3.get_object(Bucket=bucket, Key=key)["Body"].iter_lines(), start=1)


def _captured(place: tuple[str, int], line: bytes) -> Captured:
    record = parse_json(line)
    data, event = record["captureData"], record["eventMetadata"]
    at = datetime.fromisoformat(event["inferenceTime"]).astimezone(UTC)
    if data.keys() in ({"endpointInput"}, {"endpointOutput"}):
        return Captured(place, at, None, None, b"", None)
    content = _content(_body(data["endpointOutput"]))
    return Captured(
        place,
        at,
        event.get("inferenceId"),
        hashlib.sha256(_body(data["endpointInput"])).digest(),
        digest(content),
        None if re.search(r'\[\]|"null"', json.dumps(form := form_of(content))) else digest(form),
    )


def _body(side: Mapping[str, str]) -> bytes:
    is_binary = side["encoding"] == "BASE64"
    return base64.b64decode(side["data"], validate=True) if is_binary else side["data"].encode()


def _content(body: bytes) -> Any:
    try:
        content = parse_json(body)
    except ValueError:
        return body.decode(errors="backslashreplace")
    if isinstance(content, dict) and {"choices", "object"} <= content.keys():
        return {key: value for key, value in content.items() if key not in _OWN_KEYS}
    return content


def form_of(value: Any) -> Any:
    """Returns an answer with the kind of each value in its place; a list has its first item's."""
    if isinstance(value, dict):
        return {key: form_of(each) for key, each in value.items()}
    return [form_of(each) for each in value[:1]] if isinstance(value, list) else _KINDS[type(value)]


def digest(content: Any) -> bytes:
    """Returns the SHA-256 of values of JSON, whatever their keys' order."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
