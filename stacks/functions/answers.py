"""What every function has in common: the requests of CloudFormation, and the answers to them."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

Event = Mapping[str, Any]
# Sends an answer to an address.
Answer = Callable[[str, dict[str, str]], None]
# Returns boto3's client of a service.
Client = Callable[[str], Any]
# Waits for that many seconds.
Wait = Callable[[float], None]
Handle = Callable[[Event, Client, Answer, Wait], None]

_PUT_TIMEOUT_SECONDS = 10
# Responses have 4096 bytes at most; the rest of a response is identifiers.
_LONGEST_REASON = 2000
_DENIED_ATTEMPTS, _DENIED_PAUSE_SECONDS = 7, 10.0


class Outcome(NamedTuple):
    """What was done.

    Args:
        made_id: the PhysicalResourceId of a new resource, where it depends on the work.
    """

    reason: str
    made_id: str | None = None


class RefusedError(Exception):
    """The deployment cannot go on; the message says what to do."""


def run(handle: Handle, event: Event, _context: object) -> None:
    """Handles a call of Lambda; if the answer cannot be sent, the call fails and is tried again."""
    # Imported here, because only Lambda's own environment sets the client's region.
    import boto3
    from botocore.config import Config

    client: Any = boto3.client  # its types list every service by name
    # The mode also retries throttled calls.
    config = Config(retries={"mode": "standard", "total_max_attempts": 10})
    handle(event, partial(client, config=config), put, time.sleep)


def respond(
    event: Event, answer: Answer, own_id: str, work: Callable[[], Outcome], wait: Wait
) -> None:
    """Does the work of a request and answers it.

    Args:
        event: the request of a custom resource.
        answer: sends the answer.
        own_id: the PhysicalResourceId of a new resource. An existing one keeps its id, because
            CloudFormation would take another id for a replacement.
        work: does what the request asks for; it is done again if it was denied.
        wait: waits before that.
    """
    physical_id = event.get("PhysicalResourceId", own_id)
    status = "SUCCESS"
    try:
        reason, made_id = _allowed(work, wait)
        physical_id = made_id or physical_id
    # Any error is answered, because without an answer the stack would hang.
    except Exception as error:
        status, reason = "FAILED", str(error)
    told = {name: event[name] for name in ("LogicalResourceId", "RequestType")}
    print(json.dumps({**told, "Status": status, "Reason": reason}))
    send(event, physical_id, status, reason, answer)


def _allowed(work: Callable[[], Outcome], wait: Wait) -> Outcome:
    """Does the work, again for a minute if it is denied.

    A role that was just made is not known everywhere: https://github.com/aws/aws-cdk/issues/37675.
    """
    for _ in range(_DENIED_ATTEMPTS - 1):
        try:
            return work()
        except Exception as error:
            code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
            if not code.startswith("AccessDenied"):
                raise
            wait(_DENIED_PAUSE_SECONDS)
    return work()


def send(request: Event, physical_id: str, status: str, reason: str, answer: Answer) -> None:
    """Answers a request.

    Args:
        request: the members of the request that an answer repeats, and its ResponseURL.
        physical_id: PhysicalResourceId.
        status: `SUCCESS` or `FAILED`.
        reason: shown as the event's reason if it failed.
        answer: sends the answer to the request's ResponseURL.
    """
    answer(
        request["ResponseURL"],
        {
            "Status": status,
            "Reason": reason[:_LONGEST_REASON],
            "StackId": request["StackId"],
            "RequestId": request["RequestId"],
            "LogicalResourceId": request["LogicalResourceId"],
            "PhysicalResourceId": physical_id,
        },
    )


def put(url: str, content: dict[str, str]) -> None:
    """Sends an answer to the signed address that CloudFormation gave for it."""
    request = urllib.request.Request(  # noqa: S310  # CloudFormation's own address
        url,
        data=json.dumps(content).encode(),
        method="PUT",
        # The URL is signed for a request without a content type; urllib would add one.
        headers={"Content-Type": ""},
    )
    with urllib.request.urlopen(request, timeout=_PUT_TIMEOUT_SECONDS):  # noqa: S310  # as above
        pass
