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
from slipway.config.names import COMMIT_RULE
from slipway.errors import UserError

_APP = "app.py"
_CONTEXT_LINES = 2


def templates_difference(before: Path, after: Path, environment: str, names: Sequence[str]) -> str:
    """Returns the difference of the templates of models, as a unified diff.

    Args:
        before: the base's project.
        after: the project.
        environment: its name.
        names: models that both projects have.

    Raises:
        UserError: an app ends with an error.
    """
    with tempfile.TemporaryDirectory(prefix="slipway-templates-") as folder:
        sides = {before: Path(folder, "before"), after: Path(folder, "after")}
        # Both start at once: most of their time goes by before a stack is made.
        running = [_start(*side, environment, names) for side in sides.items()]
        for process, project in zip(running, sides, strict=True):
            _finish(process, project)
        olds, news = (_templates(output, names) for output in sides.values())
    return "".join(
        line
        for name in names
        for line in difflib.unified_diff(
            olds[name], news[name], f"a/{name}", f"b/{name}", n=_CONTEXT_LINES
        )
    )


def _start(
    project: Path, output: Path, environment: str, names: Sequence[str]
) -> "subprocess.Popen[str]":
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


def _finish(process: "subprocess.Popen[str]", project: Path) -> None:
    _, told = process.communicate()
    if process.returncode:
        raise UserError.of(
            Code.NO_TEMPLATES,
            f"{project / _APP} wrote no templates: {told.strip() or process.returncode}",
            "Mend what it says, or leave out `--templates`.",
        )


def _templates(output: Path, names: Sequence[str]) -> Mapping[str, list[str]]:
    """Returns the lines of each model's template, with sorted keys and without the commit."""
    found = {}
    for name in names:
        content = json.loads((output / f"{name}.template.json").read_text("utf-8"))
        content.get("Rules", {}).pop(COMMIT_RULE, None)
        text = json.dumps(content, indent=1, sort_keys=True)
        found[name] = text.splitlines(keepends=True)
    return found
