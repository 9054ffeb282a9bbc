"""The cause of a rollout that alarms undid, from the log of its instances."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.operations.status.rollback_causes import Trip, find_cause

BEGIN = datetime(2026, 11, 28, 20, 0, tzinfo=UTC)
TRIPS = [Trip("5XX", "", BEGIN + timedelta(minutes=5), "")]
FAILED = json.dumps({"level": "error", "event": "batch_failed", "exception": "Traceback\nE: \x1b"})


class Logs:
    """CloudWatch Logs with some streams: lines by their minutes since the deployment began."""

    def __init__(self, streams: Mapping[str, Sequence[tuple[float, str]]]) -> None:
        self._streams = streams

    def describe_log_streams(self, **_: Any) -> Any:
        if not self._streams:
            error = {"Code": "ResourceNotFoundException", "Message": "no such group"}
            raise ClientError({"Error": error}, "DescribeLogStreams")
        return {
            "logStreams": [
                {"logStreamName": name, "creationTime": _milliseconds(lines[0][0])}
                for name, lines in self._streams.items()
            ]
        }

    def get_paginator(self, _: str) -> "Logs":
        return self

    def paginate(self, *, logStreamNames: list[str], **_: Any) -> Iterator[Any]:  # noqa: N803
        for name in logStreamNames:
            events = [
                {"timestamp": _milliseconds(at), "logStreamName": name, "message": text}
                for at, text in self._streams[name]
            ]
            yield {"events": events}


def _milliseconds(minutes: float) -> float:
    return (BEGIN + timedelta(minutes=minutes)).timestamp() * 1000


@pytest.mark.parametrize(
    ("streams", "cause"),
    [
        ({}, None),
        # The old fleet's instances, and one that came afterwards.
        ({"old": [(-9, "up"), (2, "ValueError: old")], "later": [(6, "ValueError: later")]}, None),
        ({"new": [(1, "up"), (2, "ready")]}, None),
        ({"new": [(1, "up"), (6, "ValueError: after the alarm")]}, None),
        ({"new": [(1, "up"), (3, FAILED)]}, r"E: \x1b"),
        (
            {
                "new": [
                    (1, "Traceback (most recent call last):"),
                    (1, '    raise ValueError("x")'),
                    (1, "ValueError: x"),
                    (2, "KeyError: y"),
                ]
            },
            "ValueError: x",
        ),
        ({"a": [(2, "KeyError: second")], "b": [(1, "KeyError: first")]}, "KeyError: first"),
    ],
)
def test_the_first_error_of_the_new_instances_is_the_cause(streams, cause):
    assert find_cause(Logs(streams), "group", TRIPS, BEGIN) == cause
    # The stack's own reasons tell what no alarm undid.
    assert find_cause(Logs(streams), "group", [], BEGIN) is None
