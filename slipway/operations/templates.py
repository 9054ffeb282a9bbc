"""How the templates of two trees differ: each tree's own app writes them, as the CDK CLI has it."""

import difflib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from slipway.codes.code import Code
from slipway.errors import UserError

_APP = "app.py"
_TEMPLATE = ".template.json"
_CONTEXT_LINES = 2


def templates_difference(
    before: Path,
    after: Path,
    environment: str,
    old_names: Sequence[str],
    new_names: Sequence[str],
) -> str:
    """Returns the difference of the templates of models in one environment, as a unified diff.

    Args:
        before: the base's project.
        after: the project.
        environment: its name.
        old_names: models of the base's project.
        new_names: models of the project.

    Raises:
        UserError: an app ends with an error.
    """
    with tempfile.TemporaryDirectory(prefix="slipway-templates-") as folder:
        sides = (
            (before, Path(folder, "before"), old_names),
            (after, Path(folder, "after"), new_names),
        )
        # Both start at once: most of their time goes by before a stack is made.
        running = [_start(*side, environment) for side in sides]
        for process, (project, _, _) in zip(running, sides, strict=True):
            _finish(process, project)
        olds, news = (_templates(output) for _, output, _ in sides)
    return "".join(
        line
        for name in sorted({*olds, *news})
        for line in difflib.unified_diff(
            olds.get(name, []), news.get(name, []), f"a/{name}", f"b/{name}", n=_CONTEXT_LINES
        )
    )


def _start(
    project: Path, output: Path, names: Sequence[str], environment: str
) -> "subprocess.Popen[str] | None":
    if not names:
        return None
    if not (project / _APP).is_file():
        raise UserError.of(
            Code.NO_TEMPLATES,
            f"{project / _APP} is missing, which writes the templates",
            "Leave out `--templates`, or run the command in a project with the file.",
        )
    context = {"env": environment, "models": ",".join(names), "allow-unpublished": "true"}
    variables = {"CDK_OUTDIR": str(output), "CDK_CONTEXT_JSON": json.dumps(context)}
    return subprocess.Popen(  # noqa: S603  # this Python, no shell
        [sys.executable, _APP],
        cwd=project,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: "subprocess.Popen[str] | None", project: Path) -> None:
    if process is None:
        return
    _, told = process.communicate()
    if process.returncode:
        raise UserError.of(
            Code.NO_TEMPLATES,
            f"{project / _APP} wrote no templates: {told.strip() or process.returncode}",
            "Mend what it says, or leave out `--templates`.",
        )


def _templates(output: Path) -> Mapping[str, list[str]]:
    """Returns the lines of each template, by its stack, in an order of their own."""
    found = {}
    for file in output.rglob(f"*{_TEMPLATE}"):
        content = json.dumps(json.loads(file.read_text("utf-8")), indent=1, sort_keys=True)
        found[file.name.removesuffix(_TEMPLATE)] = content.splitlines(keepends=True)
    return found
