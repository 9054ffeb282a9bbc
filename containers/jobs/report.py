"""Reports of a compile job: one log line per stage, and the reason of a failure."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from containers.serving.exit_codes import EXIT_OK, EXIT_OPERATOR_PROBLEM, EXIT_OWN_FAULT
from containers.serving.logs import log_error, log_info, log_warning

FAILURE_FILE: Final = "failure"
# DescribeTrainingJob's FailureReason holds no more of the file.
LONGEST_REASON_CHARACTERS: Final = 1024


class CompileError(Exception):
    """The job's input makes success impossible; the message tells the user what to change.

    It ends the job with exit code 1 and one line. Any other exception is a bug of Slipway: exit
    code 2 and a traceback in the log.
    """


@contextlib.contextmanager
def stage(name: str, **about: Any) -> Iterator[dict[str, Any]]:
    """Logs the start and the end of a stage, with its duration and the fields `about`.

    It yields the further fields of the line at the end; sizes belong there.
    """
    log_info("stage_started", stage=name, **about)
    started = time.monotonic()
    fields: dict[str, Any] = {}
    yield fields
    log_info(
        "stage_finished",
        stage=name,
        duration_seconds=round(time.monotonic() - started, 3),
        **about,
        **fields,
    )


def report_failure(output_dir: Path, reason: str, *, error: BaseException | None = None) -> None:
    """Logs why the job failed, and writes the reason to the file that SageMaker reads.

    An `error` is a bug of Slipway, and its traceback is logged.
    """
    reason = " ".join(reason.split())
    log_error("compile_failed", error=error, message=reason)
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        (output_dir / FAILURE_FILE).write_text(reason[:LONGEST_REASON_CHARACTERS], encoding="utf-8")
    except OSError as problem:
        # The log has the reason; one line says that SageMaker will not have it.
        log_warning(
            "failure_file_not_written",
            message=f"cannot write {output_dir / FAILURE_FILE}: {problem.strerror}",
        )


def exit_code_of(
    work: Callable[[], int | None],
    output_dir: Path,
    machine_problem: Callable[[Exception], str | None] = lambda _error: None,
) -> int:
    """Does the work of a process, and reports why it failed, also in the file `failure`.

    `work` returns None, or the exit code of a process that reported its own failure.
    `machine_problem` returns the reason if the machine was not suitable, or None. The exit code is
    0, 1 for a problem that the user can solve, or 2 for a bug of Slipway.
    """
    try:
        return work() or EXIT_OK
    except CompileError as error:
        report_failure(output_dir, str(error))
        return EXIT_OPERATOR_PROBLEM
    except Exception as error:
        reason = machine_problem(error)
        if reason is not None:
            report_failure(output_dir, reason)
            return EXIT_OPERATOR_PROBLEM
        bug = f"unexpected error, a bug of this container: {type(error).__name__}: {error}"
        report_failure(output_dir, f"{bug}; the job's log has the traceback", error=error)
        return EXIT_OWN_FAULT
