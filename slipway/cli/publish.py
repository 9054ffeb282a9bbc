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
    from rich.progress import Progress


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(publish)


def publish(
    name: Annotated[str, typer.Argument(help="Model.")],
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
    as_json: JsonOption = False,
) -> None:
    """Upload a model's artifact with s5cmd and write its lock file."""
    from dataclasses import asdict

    from slipway.access import open_access
    from slipway.publishing.publish import publish as publish_model

    project = current_project()
    environment = project.environment(env)
    access = open_access(environment, project.root)
    with ProgressBar() as progress:
        result = publish_model(project, name, environment, access, progress)
    if as_json:
        print_json(asdict(result))
        return
    size = f"{human_size(result.size_bytes)} in {result.file_count} files"
    sent = human_size(result.uploaded_bytes)
    moved = f"{sent} sent" if result.uploaded_bytes else "nothing to send, it was all there"
    typer.echo(f"Published {name} to {env}: {size}, {moved}.")
    typer.echo(f"Artifact {result.digest}")
    lock = project.lock_path(name).relative_to(project.root).as_posix()
    typer.echo(f"{lock} {'changed: commit it.' if result.lock_changed else 'is as it was.'}")


class ProgressBar:
    """A bar of bytes on standard error; silent where that is not a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

        console = Console(stderr=True)
        self._progress: Progress = Progress(
            "uploading",
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("uploading", total=None, visible=False)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def start(self, total_bytes: int) -> None:
        """Says how much there is to send; nothing to send shows no bar."""
        self._progress.update(self._task, total=total_bytes, visible=total_bytes > 0)

    def advance(self, size_bytes: int) -> None:
        """Says that so much more has arrived."""
        self._progress.advance(self._task, size_bytes)
