"""Structured logs: one JSON object per line, which CloudWatch Logs Insights reads without a parser.

Every line has `time` (UTC, milliseconds), `level` and `event`; the other fields depend on the
event. Durations carry their unit in the field's name.
"""

import json
import logging
from datetime import datetime, timezone
from functools import partial
from typing import Final, TextIO

_logger = logging.getLogger("containers")

LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")

_FIELDS_ATTRIBUTE = "event_fields"
# datetime.UTC needs Python 3.11, and some processes of the containers run 3.10.
_UTC: Final = timezone.utc  # noqa: UP017


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON; the message of a library's record is its event."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, _UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "event": record.getMessage(),
        }
        fields = getattr(record, _FIELDS_ATTRIBUTE, None)
        if fields is None:
            line["logger"] = record.name
        else:
            line.update(fields)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _log(level: int, event: str, *, error: BaseException | None = None, **fields: object) -> None:
    """Logs an event, with keyword arguments as further fields of its JSON line.

    `event` is a stable name in snake case, which log queries filter by. The traceback of `error` is
    added. Durations and sizes have their unit in the field's name.
    """
    _logger.log(level, "%s", event, exc_info=error, extra={_FIELDS_ATTRIBUTE: fields})


log_info: Final = partial(_log, logging.INFO)
log_warning: Final = partial(_log, logging.WARNING)
log_error: Final = partial(_log, logging.ERROR)


def configure_logging(level: str, stream: TextIO) -> None:
    """Sends every logger's records from `level` up to `stream` as JSON lines."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # No line shows them, and `logging` would look for them in every request:
    # https://docs.python.org/3/howto/logging.html#optimization
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # uvicorn reports its own start and stop at INFO; the server's events report them with fields.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
