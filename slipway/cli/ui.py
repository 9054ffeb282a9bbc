"""`slipway ui`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli.output import DEFAULT_ENVIRONMENT, EnvironmentOption, current_project

if TYPE_CHECKING:
    from slipway.ui.app import Wording


def ui(
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
    port: Annotated[
        int, typer.Option(help="Loopback port; 0 takes any free one.", min=0, max=65535)
    ] = 0,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address, and open no browser.")
    ] = False,
) -> None:
    """Show models, logs, plans and a review as pages on this machine, until Ctrl-C."""
    # Imported when they are needed, because planning takes its time.
    from slipway.ui.looks import Looks
    from slipway.ui.server import serve

    project = current_project()
    project.environment(env)  # says which there are

    def show(address: str) -> None:
        typer.echo(f"Open this address, and keep it secret, because it has a token:\n  {address}")
        typer.echo("Ctrl-C ends the page.")

    is_opened = not no_open and _has_screen()
    serve(Looks(project.root, env), command_words(), port, show, is_opened=is_opened)


def command_words() -> Wording:
    from slipway.cli.list_ import FLEET_HEAD, fleet_cells
    from slipway.cli.plan_text import plan_rows
    from slipway.cli.review_text import review_rows
    from slipway.cli.status import status_rows, verdicts
    from slipway.operations.log_text import readable
    from slipway.ui.app import Wording

    return Wording(FLEET_HEAD, fleet_cells, plan_rows, verdicts, status_rows, review_rows, readable)


def _has_screen() -> bool:
    """Returns whether a browser would open in a window, and not in this terminal."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform == "darwin" or any(os.environ.get(each) for each in screens)
