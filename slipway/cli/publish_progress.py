"""What `slipway publish` shows on standard error while it works."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from slipway.cli.output import human_size

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.status import Status

# Between two lines of a log.
_LINE_SECONDS: Final = 30.0


class ProgressBar:
    """Progress on standard error.

    On a terminal it shows a bar of bytes, or a line with a clock while a training job runs.
    Elsewhere it prints a line for each change of such a job, and one for bytes every 30 seconds.
    """

    def __init__(
        self, console: Console | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        if console is None:
            from rich import console as rich_console

            console = rich_console.Console(stderr=True, highlight=False, soft_wrap=True)
        self._console = console
        self._now = now
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._lines: _Lines | None = None
        self._clock: Status | None = None
        self._state: tuple[str, str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def start(self, total_bytes: int, activity: str = "uploading") -> None:
        """Begins an activity of that many bytes; with 0 bytes, nothing is shown."""
        self._end()
        if total_bytes == 0:
            return
        if not self._console.is_terminal:
            self._lines = _Lines(activity, total_bytes, self.note, self._now)
            return
        from rich import progress

        sizes = (progress.BarColumn(), progress.DownloadColumn())
        times = (progress.TransferSpeedColumn(), progress.TimeRemainingColumn())
        self._progress = progress.Progress(activity, *sizes, *times, console=self._console)
        self._task = self._progress.add_task(activity, total=total_bytes)
        self._progress.start()

    def advance(self, size_bytes: int) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, size_bytes)
        if self._lines is not None:
            self._lines.advance(size_bytes)

    def note(self, line: str) -> None:
        self._console.print(line, markup=False)

    def job(self, name: str, state: str, elapsed_seconds: float) -> None:
        minutes, seconds = divmod(int(elapsed_seconds), 60)
        line = f"{name}: {state}, {minutes}:{seconds:02}"
        if self._console.is_terminal:
            if self._clock is None:
                self._end()
                self._clock = self._console.status(line)
                self._clock.start()
            self._clock.update(line)
        elif self._state != (name, state):
            self._console.print(line, markup=False)
        self._state = (name, state)

    def _end(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = self._task = None
        self._lines = None
        if self._clock is not None:
            self._clock.stop()
            self._clock = None


class _Lines:
    """An activity in a log: a line every 30 seconds, and none for a short one."""

    def __init__(
        self,
        activity: str,
        total_bytes: int,
        write: Callable[[str], None],
        now: Callable[[], float],
    ) -> None:
        self._activity, self._total_bytes = activity, total_bytes
        self._write, self._now = write, now
        self._done_bytes = 0
        self._begun = self._last = now()

    def advance(self, size_bytes: int) -> None:
        self._done_bytes += size_bytes
        now = self._now()
        if now - self._last < _LINE_SECONDS:
            return
        self._last = now
        rate = self._done_bytes / (now - self._begun)
        line = (
            f"{self._activity}: {human_size(self._done_bytes)} of {human_size(self._total_bytes)}, "
            f"{human_size(rate)}/s"
        )
        if rate > 0:
            line += f", {_duration((self._total_bytes - self._done_bytes) / rate)} left"
        self._write(line)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
