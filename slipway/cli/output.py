"""How results and problems are printed: for people, or with `--json` for programs.

Colours are on a terminal alone, and no meaning is told by a colour alone. Headings are bold, and a
word that tells a state has its colour.
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO, TypeVar

import typer

from slipway.codes.code import Code
from slipway.config.names import LOCAL
from slipway.errors import Kind, UserError
from slipway.full_disk import no_room_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from slipway.access import Access
    from slipway.config.environments import Environment
    from slipway.project import Project

_STATE: Final = re.compile(
    r"""\s*(?:
    (?P<red>\d+\ problems?|TROUBLE|ALARM|Failed|\w*(?:FAILED|ROLLBACK)\w*|replaced\ with\ a\ gap
        |refused\ by\ AWS|needs\ destroy|removed|renamed)
    |(?P<yellow>CHANGING|NOTE|note|warning|not\ seen|INSUFFICIENT_DATA|\w+_IN_PROGRESS|changes
        |Creating|Updating|SystemUpdating|RollingBack|Deleting|new\ fleet|unknown|widened)
    |(?P<green>OK|ok|in\ service|InService|\w+_COMPLETE|in\ place)
    )(?![\w-])""",
    re.VERBOSE,
)
_FORCING: Final = ("FORCE_COLOR", "CLICOLOR_FORCE")


def is_forced() -> bool:
    """Returns whether the user wants colours also in files and pipes."""
    forced = any(os.environ.get(name, "0") not in ("", "0") for name in _FORCING)
    return forced and not os.environ.get("NO_COLOR")


def heading(text: str, stream: TextIO | None = None) -> str:
    """Returns text in bold, where the stream (without one, standard output) shows it."""
    return typer.style(text, bold=True) if text and _shows(stream or sys.stdout) else text


def state(text: str, stream: TextIO | None = None) -> str:
    """Returns text whose first words have the colour of the state that they tell, if any."""
    found = _STATE.match(text)
    if found is None or not _shows(stream or sys.stdout):
        return text
    return typer.style(found[0], fg=found.lastgroup, bold=True) + text[found.end() :]


def _shows(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return is_forced() or (os.environ.get("TERM") != "dumb" and stream.isatty())


def model_names() -> list[str]:
    try:
        return list(current_project().files)
    except UserError:
        return []


def _environment_names() -> list[str]:
    try:
        return current_project().environment_names
    except UserError:
        return []


ModelArgument = Annotated[
    str, typer.Argument(help="Name of the model.", autocompletion=model_names)
]
OptionalModelArgument = Annotated[
    str | None, typer.Argument(help="Name of the model.", autocompletion=model_names)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
EnvironmentOption = Annotated[
    str,
    typer.Option(
        "--env",
        help="Environment in environments.yaml.",
        envvar="SLIPWAY_ENV",
        autocompletion=_environment_names,
    ),
]
DestructiveOption = Annotated[
    bool,
    typer.Option("--allow-destructive", help="Exit with 0 although a stack has to be destroyed."),
]
AnyEnvironmentOption = Annotated[
    str | None,
    typer.Option(
        "--env",
        help="Environment in environments.yaml. Default: those that deploy the model.",
        envvar="SLIPWAY_ENV",
        autocompletion=_environment_names,
    ),
]
_Times = TypeVar("_Times")
DEFAULT_ENVIRONMENT = LOCAL
# Labels whose values begin with a state.
_STATES = frozenset({"alarm", "deploy", "endpoint", "scaling", "stack", "verdict"})
ANSWER_IS_NO = 3
"""Exit code of a command that worked and found something else than its name asks for."""


def current_project() -> Project:
    from slipway.project import Project

    return Project.find(Path.cwd())


def opened(env: str) -> tuple[Project, Environment, Access]:
    from slipway.access import open_access

    project = current_project()
    environment = project.environment(env)
    return project, environment, open_access(environment, project.root)


def wrong_options(message: str, remedy: str) -> UserError:
    return UserError.of(Code.WRONG_OPTIONS, message, remedy)


def wrong_value(message: str, remedy: str) -> UserError:
    return UserError.of(Code.WRONG_OPTIONS, message, remedy, kind=Kind.VALUE)


def times_in(file: str, read: Callable[[TextIO, str], _Times], code: Code) -> _Times:
    """Returns what a function reads in the lines of a CSV file of times."""
    try:
        with Path(file).open(encoding="utf-8", newline="") as lines:
            return read(lines, file)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        message = f"{file} cannot be read: {reason}"
        raise UserError.of(code, message, "Name a CSV file of times.") from None


def write_file(path: Path, text: str, shown: str) -> None:
    with reported(shown, path):
        path.write_text(text, encoding="utf-8")


@contextmanager
def reported(shown: str, path: Path) -> Iterator[None]:
    """Turns an error of writing a file into a `UserError` with what the user can do."""
    try:
        yield
    except OSError as error:
        no_room = no_room_problem(error, shown)
        if no_room is not None:
            raise no_room from None
        remedy = "Name another file, or allow writing there."
        if not path.parent.is_dir():
            remedy = f"Make the folder first, `mkdir -p {path.parent}`, or name another file."
        raise UserError.of(
            Code.OUTPUT_PATH, f"{shown} cannot be written: {error.strerror}", remedy
        ) from None


def print_json(content: Any) -> None:
    """Prints one JSON document on standard output, with times in UTC."""

    def shown(moment: object) -> str:
        if not isinstance(moment, datetime):
            raise TypeError(f"{type(moment).__name__} is not JSON")
        return moment.astimezone(UTC).isoformat(timespec="milliseconds")

    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, default=shown))


def print_error(error: UserError, *, as_json: bool) -> None:
    if as_json:
        print_json({"problems": [problem.as_json() for problem in error.problems]})
    else:
        sys.stderr.write(f"{state(str(error), sys.stderr)}\n")


def as_lines(rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(label) for label, _ in rows)
    return "\n".join(
        # Colours have no width.
        f"{_label(label)}{' ' * (width - len(label))}  "
        f"{state(value) if label.strip() in _STATES else value}"
        for label, value in rows
    )


def _label(text: str) -> str:
    shown = state(text)
    return heading(text) if shown == text else shown


def human_size(size_bytes: float) -> str:
    """Returns a size with a decimal unit: `4.9 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "bytes" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} TB"
