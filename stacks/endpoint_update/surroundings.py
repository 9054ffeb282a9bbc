"""What the function is given to work with, and the error that stops a deployment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Event = Mapping[str, Any]
# Sends an answer to an address.
Answer = Callable[[str, dict[str, str]], None]
# Returns boto3's client of a service.
Client = Callable[[str], Any]
# Waits for that many seconds.
Wait = Callable[[float], None]


class RefusedError(Exception):
    """The deployment cannot go on; the message says what to do."""
