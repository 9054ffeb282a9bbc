"""How a compile job reports: a log line per stage, and the reason of a failure."""

import contextlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from containers.serving.logs import log_event

# The program's exit codes, the same as when it serves.
EXIT_OK: Final = 0
EXIT_OPERATOR_PROBLEM: Final = 1
EXIT_OWN_FAULT: Final = 2

FAILURE_FILE: Final = "failure"
# DescribeTrainingJob's FailureReason holds no more of the file.
LONGEST_REASON_CHARACTERS: Final = 1024

_logger = logging.getLogger(__name__)


class CompileError(Exception):
    """The job cannot succeed as it was given; the message is one that the user can act on.

    It ends the job with exit code 1 and one line. Any other exception is a bug of ours: exit code
    2 and a traceback in the log.
    """


@contextlib.contextmanager
def stage(name: str, **about: Any) -> Iterator[dict[str, Any]]:
    """Logs the start and the end of a stage, with its duration.

    Args:
        name: of the stage.
        about: fields of both lines, such as which of several it is.

    Yields:
        Fields for the line at the end; sizes belong here.
    """
    log_event(_logger, logging.INFO, "stage_started", stage=name, **about)
    started = time.monotonic()
    fields: dict[str, Any] = {}
    yield fields
    log_event(
        _logger,
        logging.INFO,
        "stage_finished",
        stage=name,
        duration_seconds=round(time.monotonic() - started, 3),
        **about,
        **fields,
    )


def report_failure(output_dir: Path, reason: str, *, error: BaseException | None = None) -> None:
    """Logs why the job failed and writes it where SageMaker looks for it.

    Args:
        output_dir: `failure` is written here; it is made where it is missing.
        reason: whatever is more than one line of it becomes one.
        error: a bug of ours, whose traceback the log gets.
    """
    reason = " ".join(reason.split())
    log_event(_logger, logging.ERROR, "compile_failed", error=error, message=reason)
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        (output_dir / FAILURE_FILE).write_text(reason[:LONGEST_REASON_CHARACTERS], encoding="utf-8")
    except OSError as problem:
        # The log has the reason; that SageMaker will not is worth a line and no more.
        log_event(
            _logger,
            logging.WARNING,
            "failure_file_not_written",
            message=f"cannot write {output_dir / FAILURE_FILE}: {problem.strerror}",
        )


def bug_reason(error: BaseException) -> str:
    """The reason of a failure that is a bug of ours."""
    return (
        f"unexpected error, a bug of this container: {type(error).__name__}: {error}; the job's "
        "log has the traceback"
    )
