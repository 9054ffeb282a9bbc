"""Writes container output to CloudWatch Logs, and to a file beside it.

A container writes lines faster than one API call per line would allow, so one thread ships them in
batches. A stream is flushed when its container has stopped, before the endpoint is gone. Nothing
therefore arrives after the stack has deleted the log group.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.periodic import Periodic

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS = 0.2
# PutLogEvents: at most 10,000 events and 1,048,576 bytes per batch, 26 bytes of overhead per event,
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html
_BATCH_EVENTS = 10_000
_BATCH_BYTES = 1_048_576
_EVENT_OVERHEAD_BYTES = 26
_LINE_CHARACTERS = 64_000


class LogStream:
    def __init__(self, client: Any, group: str, stream: str, file: Path) -> None:
        self._client = client
        self.group = group
        self.name = stream
        self._pending: list[dict[str, Any]] = []
        self._pending_lock = threading.Lock()
        self._shipping = threading.Lock()
        try:
            client.create_log_stream(logGroupName=group, logStreamName=stream)
        except client.exceptions.ResourceNotFoundException:
            # Another variant of the endpoint may create it in the meantime.
            with contextlib.suppress(client.exceptions.ResourceAlreadyExistsException):
                client.create_log_group(logGroupName=group)
            client.create_log_stream(logGroupName=group, logStreamName=stream)
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file.open("a", encoding="utf-8", errors="replace")

    def write(self, line: str) -> None:
        with self._pending_lock:
            if self._file.closed:
                return
            self._file.write(line + "\n")
            self._file.flush()
            if line:  # an event's message is at least one character
                now_milliseconds = int(time.time() * 1000)
                message = line[:_LINE_CHARACTERS]
                self._pending.append({"timestamp": now_milliseconds, "message": message})

    def ship(self) -> None:
        with self._shipping:
            with self._pending_lock:
                events, self._pending = self._pending, []
            for batch in _batches(events):
                try:
                    self._client.put_log_events(
                        logGroupName=self.group, logStreamName=self.name, logEvents=batch
                    )
                except (ClientError, BotoCoreError) as error:
                    # The group may be deleted under a running endpoint; the file has the lines.
                    logger.warning("%d lines not in %s: %s", len(batch), self.group, error)

    def close(self) -> None:
        self.ship()
        with self._pending_lock:
            self._file.close()


def _batches(events: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for event in events:
        event_bytes = len(event["message"].encode()) + _EVENT_OVERHEAD_BYTES
        if batch and (len(batch) == _BATCH_EVENTS or size + event_bytes > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += event_bytes
    if batch:
        yield batch


class LogShipper:
    def __init__(self, clients: LoopbackClients) -> None:
        self._clients = clients
        self._streams: set[LogStream] = set()
        self._lock = threading.Lock()
        self._shipping = Periodic(self._ship, _INTERVAL_SECONDS, "log-shipper")

    def open(self, *, region: str, group: str, stream: str, file: Path) -> LogStream:
        opened = LogStream(self._clients.client("logs", region), group, stream, file)
        with self._lock:
            self._streams.add(opened)
        return opened

    def release(self, stream: LogStream) -> None:
        with self._lock:
            self._streams.discard(stream)
        stream.close()

    def close(self) -> None:
        """Stops the thread; every stream must have been released."""
        self._shipping.close()

    def _ship(self) -> None:
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            stream.ship()
