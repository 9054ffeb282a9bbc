"""Keeps the end of the log that a failed first deployment would take along."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

# With the endpoint's name. The first that exists is the stack's.
_GROUPS = ("/aws/sagemaker/InferenceComponents/", "/aws/sagemaker/Endpoints/")
_KEPT = "/slipway/failed-deployments/"
_KEPT_DAYS = 14
# Of each stream. A stream is one instance's container.
_STREAMS, _LINES, _LONGEST_LINE = 2, 200, 4000


def settle_log(logs: Any, name: str, stack_status: Callable[[], str]) -> list[str]:
    """Copies the last lines if the stack's creation is undone; deletes a copy with the stack.

    CloudFormation deletes the log group in both cases. If it kept the group, the next creation
    would fail, because the name exists and SageMaker allows no other.

    Returns:
        The finished changes. An error is among them, because the stack has to go on.
    """
    try:
        if stack_status() == "ROLLBACK_IN_PROGRESS":
            _copy(logs, name)
            return [f"kept the end of the log in {_KEPT}{name}"]
        with suppress(logs.exceptions.ResourceNotFoundException):
            logs.delete_log_group(logGroupName=_KEPT + name)
    except Exception as error:
        return [f"could not keep or delete a log: {error}"]
    return []


def _copy(logs: Any, name: str) -> None:
    group = next(
        group
        for prefix in _GROUPS
        for group in logs.describe_log_groups(logGroupNamePrefix=prefix + name)["logGroups"]
        if group["logGroupName"] == prefix + name
    )
    # An earlier creation may have left them.
    there = suppress(logs.exceptions.ResourceAlreadyExistsException)
    key = {"kmsKeyId": group["kmsKeyId"]} if "kmsKeyId" in group else {}
    with there:
        logs.create_log_group(logGroupName=_KEPT + name, **key)
    logs.put_retention_policy(logGroupName=_KEPT + name, retentionInDays=_KEPT_DAYS)
    source = {"logGroupName": group["logGroupName"]}
    streams = logs.describe_log_streams(
        **source, orderBy="LastEventTime", descending=True, limit=_STREAMS
    )["logStreams"]
    for stream in streams:
        kept = {"logGroupName": _KEPT + name, "logStreamName": stream["logStreamName"]}
        with there:
            logs.create_log_stream(**kept)
        events = logs.get_log_events(**kept | source, limit=_LINES, startFromHead=False)["events"]
        lines = [
            {"timestamp": event["timestamp"], "message": event["message"][:_LONGEST_LINE]}
            for event in events
        ]
        if lines:
            logs.put_log_events(**kept, logEvents=lines)
