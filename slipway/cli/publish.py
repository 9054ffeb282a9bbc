"""`slipway publish`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Self

import typer

from slipway.cli.output import (
    DEFAULT_ENVIRONMENT,
    EnvironmentOption,
    JsonOption,
    current_project,
    human_size,
    print_json,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.status import Status


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(publish)


def publish(
    name: Annotated[str, typer.Argument(help="Model.")],
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
    as_json: JsonOption = False,
) -> None:
    """Publish a model: upload its files, compile what is to be compiled, write its lock file."""
    from dataclasses import asdict

    from slipway.access import open_access
    from slipway.publishing.publish import publish as publish_model
    from slipway.publishing.weights import ANY

    project = current_project()
    environment = project.environment(env)
    access = open_access(environment, project.root)
    with ProgressBar() as progress:
        result = publish_model(project, name, environment, access, progress)
    if as_json:
        print_json(asdict(result))
        return
    files = "1 file" if result.file_count == 1 else f"{result.file_count} files"
    size = f"{human_size(result.size_bytes)} in {files}"
    sent = human_size(result.uploaded_bytes)
    moved = f"{sent} sent" if result.uploaded_bytes else "nothing to send, it was all there"
    typer.echo(f"Published {name} to {env}: {size}, {moved}.")
    if result.parts is not None:
        parts = f"{human_size(result.parts.size_bytes)} for {result.parts.target}"
        typer.echo(f"Partitioned into {parts}, by {result.parts.source}.")
        typer.echo(f"The container loads the parts itself: artifact {result.parts.digest}")
    elif result.weights_digest is not None and result.target == ANY:
        typer.echo(f"The container loads the weights itself: artifact {result.weights_digest}")
    elif result.weights_digest is not None:
        why = ", as the embedded AWS has no accelerator" if environment.is_local else ""
        typer.echo(f"Compiled for {result.target}{why}, by {result.source}.")
    typer.echo(f"Artifact {result.digest}")
    lock = project.lock_path(name).relative_to(project.root).as_posix()
    typer.echo(f"{lock} {'changed: commit it.' if result.lock_changed else 'is as it was.'}")


class ProgressBar:
    """Progress on standard error.

    On a terminal a bar of bytes, or a line with a clock while a training job runs; elsewhere a line
    for each change of such a job, and nothing of bytes.

    Args:
        console: where it is shown; by default standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        if console is None:
            from rich import console as rich_console

            console = rich_console.Console(stderr=True, highlight=False, soft_wrap=True)
        self._console = console
        self._progress: Progress | None = None
        self._task: TaskID | None = None
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
        """Says how much there is to do; where that is nothing, no bar is shown."""
        self._end()
        if not self._console.is_terminal or total_bytes == 0:
            return
        from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

        self._progress = Progress(
            activity, BarColumn(), DownloadColumn(), TransferSpeedColumn(), console=self._console
        )
        self._task = self._progress.add_task(activity, total=total_bytes)
        self._progress.start()

    def advance(self, size_bytes: int) -> None:
        """Says that so much more is done."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, size_bytes)

    def note(self, line: str) -> None:
        """Prints one line that stays."""
        self._console.print(line, markup=False)

    def job(self, name: str, state: str, elapsed_seconds: float) -> None:
        """Shows how a training job stands."""
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
        """Takes away what moves on a terminal."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = self._task = None
        if self._clock is not None:
            self._clock.stop()
            self._clock = None
