"""`slipway schema`."""

from typing import Annotated

import typer

from slipway.cli.output import current_project, write_file
from slipway.codes.code import Code
from slipway.config.names import CONFIG_DIRECTORY
from slipway.errors import UserError


def schema(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 if the file is stale.")
    ] = False,
) -> None:
    """Write model_configs/schema.json, which editors complete and check configs with."""
    from slipway.config.editor_schema import SCHEMA_FILE, render

    path = current_project().root / CONFIG_DIRECTORY / SCHEMA_FILE
    shown, text = f"{CONFIG_DIRECTORY}/{SCHEMA_FILE}", render()
    stale = not path.is_file() or path.read_text("utf-8") != text
    if check and stale:
        raise UserError.of(
            Code.STALE_SCHEMA, f"{shown} is stale", "Run `slipway schema` and commit the file."
        )
    if stale:
        write_file(path, text, shown)
    typer.echo(f"{shown} {'written' if stale else 'is up to date'}.")
