"""`slipway explain`."""

from typing import Annotated

import typer

from slipway.cli.output import JsonOption, print_json
from slipway.codes.code import Code
from slipway.errors import Kind, UserError


def explain(
    code: Annotated[
        str | None, typer.Argument(help="Code of a problem, such as SW201. Default: all codes.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the cause and the remedy of a problem by its code."""
    from slipway.codes.table import entries

    if code is None:
        if as_json:
            print_json([entry.as_json() for entry in entries().values()])
        else:
            typer.echo("\n".join(f"{entry.code}  {entry.title}" for entry in entries().values()))
        return
    entry = entries()[_known(code)]
    if as_json:
        print_json(entry.as_json())
    else:
        typer.echo(entry.as_text())


def _known(text: str) -> Code:
    from slipway.codes.table import nearest_codes

    # As it is printed, in brackets, or the number alone.
    word = text.strip("[] ").upper()
    word = f"SW{word}" if word.isdecimal() else word
    if word in {code.value for code in Code}:
        return Code(word)
    near = nearest_codes(word)
    remedy = "`slipway explain` lists all codes."
    if near:
        remedy = f"The nearest codes are {', '.join(near)}. {remedy}"
    raise UserError.of(
        Code.UNKNOWN_CODE, f"there is no problem with the code {text!r}", remedy, kind=Kind.VALUE
    )
