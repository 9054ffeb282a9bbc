"""The framing of AWS's event streams (https://smithy.io/2.0/aws/amazon-eventstream.html).

The answer of InvokeEndpointWithResponseStream has it.
"""

import json
from collections.abc import Mapping

from moto.core.eventstream import EventStreamEncoder


def event(name: str, payload: bytes) -> bytes:
    headers = {
        ":event-type": name,
        ":content-type": "application/octet-stream",
        ":message-type": "event",
    }
    return bytes(EventStreamEncoder().encode_message(headers, payload))


def exception(name: str, members: Mapping[str, str]) -> bytes:
    headers = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return bytes(EventStreamEncoder().encode_message(headers, json.dumps(members).encode()))
