"""`slipway new`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.codes.code import Code
from slipway.config.names import CI, ENVIRONMENTS_FILE, LOCAL, PROJECT_KEY
from slipway.errors import Kind, Problem, UserError
from slipway.full_disk import no_room_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.new_project import Account

_MOST_NAMES = 5
# What is there before `slipway new .` where a repository was cloned and Slipway installed.
_IN_NO_WAY = frozenset({".git", ".venv", "wheels"})


def new(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Empty, or not there yet.")
    ],
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ACCOUNT/REGION",
            help="An environment beside `local` and `ci`; may be repeated.",
        ),
    ] = None,
) -> None:
    """Start a project of your own, in a folder with a first model."""
    from slipway.new_project import WHEEL, WHEELS, new_files

    accounts = _accounts(env or [])
    shown = str(directory)
    files = new_files(accounts)
    try:
        _check_free(directory, shown)
        for name, content in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise no_room_problem(error, shown) or UserError.of(
            Code.OUTPUT_PATH,
            f"{shown} cannot be written: {error.strerror}",
            "Name another folder, or allow writing there.",
        ) from None
    typer.echo(f"{shown} has a new project of {len(files)} files. Its README.md explains them.")
    if not (directory / WHEELS / WHEEL).is_file():
        typer.echo(
            f"Put {WHEEL} into {directory / WHEELS}. `make wheel` in Slipway's checkout makes it."
        )
    folder = directory.resolve()
    above = next((each for each in folder.parents if (each / ".git").exists()), None)
    if above is not None and not (folder / ".git").exists():
        typer.echo(
            f"The git repository is {above}. GitHub reads workflows in its .github alone: move "
            "them there, and have their steps run in the project's folder."
        )
    enter = "" if folder == Path.cwd() else f"cd {shlex.quote(shown)} && "
    typer.echo(f"Next: {enter}npm ci, then `slipway local start`.")


def _check_free(directory: Path, shown: str) -> None:
    if directory.is_dir():
        there = sorted({each.name for each in directory.iterdir()} - _IN_NO_WAY)
        if not there:
            return
        more = f" and {len(there) - _MOST_NAMES} more" if len(there) > _MOST_NAMES else ""
        message = f"{shown} is not empty: it has {', '.join(there[:_MOST_NAMES])}{more}"
        remedy = "Name a folder that is empty or not there yet."
        if ENVIRONMENTS_FILE in there:
            remedy = "It is a project already: `slipway init NAME` there writes a model's config."
        raise UserError.of(Code.FILE_EXISTS, message, remedy)
    if directory.exists():
        raise UserError.of(
            Code.FILE_EXISTS, f"{shown} is a file", "Name a folder that is empty or not there yet."
        )


def _accounts(given: Sequence[str]) -> list[Account]:
    """Returns the environments of the options; raises all that are wrong or have a name twice."""
    from slipway.new_project import Account

    found: dict[str, Account] = {}
    problems = []
    for text in given:
        account = Account.parse(text)
        if account is None or account.name in found:
            message = f"--env {text!r} is not NAME=ACCOUNT/REGION"
            if account is not None:
                message = f"--env names {account.name} twice"
            problems.append(
                Problem(
                    Code.WRONG_OPTIONS,
                    Kind.VALUE,
                    message,
                    "Example: `--env production=123456789012/eu-west-1`. The name has at most 20 "
                    f"lower-case letters and digits, and is none of {LOCAL}, {CI}, {PROJECT_KEY}.",
                )
            )
        else:
            found[account.name] = account
    if problems:
        raise UserError(problems)
    return list(found.values())
