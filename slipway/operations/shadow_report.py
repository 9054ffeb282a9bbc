"""Compares the captured answers of a shadow variant with those of the production variant."""

import json
import math
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from slipway.access import Access
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.sections.endpoint import SHADOW_VARIANT_NAME, Endpoint
from slipway.deployed.traffic import Query, account_time, find_values
from slipway.errors import Kind, Problem, UserError
from slipway.operations.captured import Captured, digest, form_of, read_answer, read_captured
from slipway.planning.capture import capture_place
from slipway.planning.placements import DEFAULT_VARIANT_NAME
from slipway.project import Project
from slipway.s3_address import S3Address

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
    """Returns the path of the first value that differs, and both values."""
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
