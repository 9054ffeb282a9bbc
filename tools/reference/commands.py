"""The commands of `slipway`: what each does, its arguments and its options."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from slipway.cli.main import app
from tools.reference.tables import table


@functools.cache
def commands() -> Mapping[str, Any]:
    """Returns every command by its words, such as `local start`, in the order of `--help`."""
    return dict(_commands(typer.main.get_command(app), ()))


def blocks() -> dict[str, str]:
    return {f"slipway {words}": _block(words, each) for words, each in commands().items()}


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, each in command.commands.items():
        if hasattr(each, "commands"):
            yield from _commands(each, (*words, name))
        else:
            yield " ".join((*words, name)), each


def _block(words: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [
        each for each in command.params if each.param_type_name == "option" and each.name != "help"
    ]
    usage = f"slipway {words}"
    for each in arguments:
        name = each.name.upper() + ("..." if each.nargs == -1 else "")
        usage += f" {name}" if each.required else f" [{name}]"
    usage += " [OPTIONS]" if options else ""
    parts = [str(command.help).partition("\n")[0], f"```text\n{usage}\n```"]
    if arguments:
        rows = ((f"`{each.name.upper()}`", each.help) for each in arguments)
        parts.append(table("argument |", rows))
    if options:
        cells = ((f"`{each.opts[0]}`", each.help, _default(each)) for each in options)
        parts.append(table("option | | without it", cells))
    return "\n\n".join(parts)


def _default(option: Any) -> str:
    shown = "" if option.default in (None, False) else f"`{option.default}`"
    if option.envvar is None:
        return shown
    variable = f"the variable `{option.envvar}`"
    return f"{variable}, or {shown}" if shown else variable
