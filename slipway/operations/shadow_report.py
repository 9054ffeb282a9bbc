"""Compares the captured answers of a shadow variant with those of the production variant.

https://docs.aws.amazon.com/sagemaker/latest/dg/model-monitor-data-capture-endpoint.html has the
folders and the lines of captured data (read 2026-11-24). Bodies may be large and many, so they are
kept as digests, and the few that are shown are read again.
"""

import base64
import hashlib
import json
import math
import re
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from slipway.access import Access, paged
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.sections.endpoint import SHADOW_VARIANT_NAME, Endpoint
from slipway.deployed.traffic import Query, account_time, find_values
from slipway.errors import Kind, Location, Problem, UserError
from slipway.json_text import parse_json
from slipway.planning.artifact_place import capture_place
from slipway.planning.placements import DEFAULT_VARIANT_NAME
from slipway.project import Project
from slipway.s3_address import S3Address

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
    if isinstance(value, dict):
        return {key: form_of(each) for key, each in value.items()}
    return [form_of(each) for each in value[:1]] if isinstance(value, list) else _KINDS[type(value)]


def digest(content: Any) -> bytes:
    """Returns the SHA-256 of values of JSON, whatever their keys' order."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()


LONGEST: Final = timedelta(days=15)
"""CloudWatch keeps values of a minute so long."""
_VARIANTS: Final = (DEFAULT_VARIANT_NAME, SHADOW_VARIANT_NAME)
_PERCENTILES: Final = ("p50", "p95", "p99")
_MOST_DIFFERENCES: Final = 3
# Characters of an answer that are shown, and those before the first one that differs.
_SHOWN, _BEFORE = 60, 20
_MICROSECONDS: Final = 1000.0

_Found = Sequence[Sequence[Captured]]


@dataclass(frozen=True)
class Difference:
    """The path of the first value that differs, and both values by the places of the records."""

    field: str
    answers: Mapping[str, str]


@dataclass(frozen=True)
class ShadowReport:
    """Requests that both variants' captured data have, and percentiles of ModelLatency.

    `unpaired` requests are in the captured data of one variant alone. Only the first `differences`
    are there.
    """

    compared: int
    paired_by_inference_id: int
    equal: int
    unpaired: Mapping[str, int]
    differences: Sequence[Difference]
    latency_milliseconds: Mapping[str, Mapping[str, float | None]]


def shadow_report(
    project: Project, name: str, environment: Environment, access: Access, length: timedelta
) -> ShadowReport:
    """Compares the requests of a time until now; raises `UserError` if none can be compared."""
    loaded = project.config(name, environment.name)
    place = capture_place(loaded.config, environment)
    if (lacking := list(_lacking(loaded.config.endpoint))) or place is None:
        raise UserError(loaded.locate(lacking))
    endpoint, s3 = environment.stack_name(name), access.client("s3")
    now = account_time(access.client("sts"))
    bucket, folder = S3Address.of(f"{place.uri}/{endpoint}/")
    found = [read_captured(s3, bucket, f"{folder}{each}/", now - length) for each in _VARIANTS]
    by_id, rest = _pairs(found, lambda each: each.inference_id)
    by_request, rest = _pairs(rest, lambda each: each.request)
    pairs, unpaired = [*by_id, *by_request], dict(zip(_VARIANTS, map(len, rest), strict=True))
    if not pairs:
        counts = " and ".join(f"{count} of {variant}" for variant, count in unpaired.items())
        raise UserError.of(
            Code.NOTHING_CAPTURED,
            f"no request was captured of both variants: {counts}, below s3://{bucket}/{folder}",
            "Send requests, and wait some minutes until SageMaker has written them. Or look "
            "further back with `--since`.",
        )
    if all(one.form and other.form and one.form != other.form for one, other in pairs):
        forms = " and ".join(_difference(s3, bucket, pairs[0], form_of).answers.values())
        message = f"no answer of the shadow has the form of the production variant's: {forms}"
        remedy = "Compare models that answer in one form, or their latencies alone."
        field = ("endpoint", "shadow", "serving")
        problem = Problem(Code.ANSWER_FORM, Kind.COMPATIBILITY, message, remedy, field)
        raise UserError(loaded.locate([problem]))
    differing = [pair for pair in pairs if pair[0].answer != pair[1].answer]
    return ShadowReport(
        len(pairs),
        len(by_id),
        len(pairs) - len(differing),
        unpaired,
        [_difference(s3, bucket, pair) for pair in differing[:_MOST_DIFFERENCES]],
        _latency(access.client("cloudwatch"), endpoint, now, length),
    )


def _lacking(endpoint: Endpoint) -> Iterator[Problem]:
    if endpoint.shadow is None:
        message = "the config has no shadow variant to compare with"
        remedy = "Add `shadow` to `endpoint`, and deploy."
        yield Problem(Code.NO_SHADOW, Kind.VALUE, message, remedy, ("endpoint", "shadow"))
    capture = endpoint.data_capture
    if capture is None or len({*capture.capture}) < 2:
        message = "requests and answers are not both captured, so that no answers can be compared"
        remedy = "Set `data_capture` with `capture: [input, output]`, and deploy."
        field = ("endpoint", "data_capture")
        yield Problem(Code.TOO_LITTLE_CAPTURED, Kind.VALUE, message, remedy, field)


def _pairs(
    found: _Found, key: Callable[[Captured], Hashable | None]
) -> tuple[list[Sequence[Captured]], _Found]:
    """Returns the pairs of records with an equal key, and the unpaired records of each variant.

    Records that share a key are paired in the order of their times.
    """
    waiting = defaultdict[Hashable, deque[Captured]](deque)
    for each in found[1]:
        waiting[key(each)].append(each)
    pairs = [
        (each, waiting[key(each)].popleft())
        for each in found[0]
        if key(each) is not None and waiting[key(each)]
    ]
    paired = {each.place for pair in pairs for each in pair}
    return list(pairs), [[each for each in some if each.place not in paired] for some in found]


def _difference(
    s3: Any, bucket: str, pair: Sequence[Captured], seen: Callable[[Any], Any] = lambda whole: whole
) -> Difference:
    contents = [seen(read_answer(s3, bucket, each.place)) for each in pair]
    field, *values = _first_difference("", *contents)
    # Half of a pair of surrogates could not be printed.
    texts = [
        json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
        for value in values
    ]
    differs = (place for place, each in enumerate(zip(*texts, strict=False)) if len({*each}) > 1)
    begin = max(0, next(differs, min(map(len, texts))) - _BEFORE)
    end = begin + _SHOWN
    shown = (f"{'...' * (begin > 0)}{each[begin:end]}{'...' * (len(each) > end)}" for each in texts)
    places = (f"s3://{bucket}/{key}:{line}" for key, line in (each.place for each in pair))
    return Difference(field, dict(zip(places, shown, strict=True)))


def _first_difference(field: str, one: Any, other: Any) -> tuple[str, Any, Any]:
    members: list[tuple[str, Any, Any]] = []
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        members = [(f"{field}.{key}".lstrip("."), one[key], other[key]) for key in one]
    elif isinstance(one, list) and isinstance(other, list):
        both = enumerate(zip(one, other, strict=False))
        members = [(f"{field}[{index}]", *values) for index, values in both]
    differing = (each for each in members if digest(each[1]) != digest(each[2]))
    first = next(differing, None)
    return (field, one, other) if first is None else _first_difference(*first)


def _latency(
    cloudwatch: Any, endpoint: str, now: datetime, length: timedelta
) -> dict[str, dict[str, float | None]]:
    # One period, because percentiles of several cannot be joined. AWS may split it in two.
    period_seconds = max(1, math.ceil(length.total_seconds() / 60)) * 60
    queries = [
        Query({"EndpointName": endpoint, "VariantName": variant}, "ModelLatency", percentile)
        for variant in _VARIANTS
        for percentile in _PERCENTILES
    ]
    start = now - timedelta(seconds=period_seconds)
    answers = find_values(cloudwatch, queries, period_seconds, start, now)
    slowest = (max((each / _MICROSECONDS for each in found), default=None) for _, found in answers)
    return {variant: {each: next(slowest) for each in _PERCENTILES} for variant in _VARIANTS}
