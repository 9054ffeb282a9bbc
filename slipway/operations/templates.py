"""How the templates of two trees differ: each tree's own app writes them, as the CDK CLI has it."""

import contextlib
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
    sides = {"the base's app.py": before, "the project's app.py": after}
    for whose, project in sides.items():
        if not (project / _APP).is_file():
            raise _refused(f"{whose} is missing, which writes the templates")
    with tempfile.TemporaryDirectory(prefix="slipway-templates-") as folder:
        outputs = [Path(folder, name) for name in ("before", "after")]
        # Both start at once: most of their time goes by before a stack is made.
        running = [
            start_app(project, output, environment, names)
            for project, output in zip(sides.values(), outputs, strict=True)
        ]
        # Both end before the folder is removed, also if one of them ends with an error.
        told = [process.communicate()[1].strip() for process in running]
        for whose, process, error in zip(sides, running, told, strict=True):
            if process.returncode:
                raise _refused(f"{whose} wrote no templates: {error or process.returncode}")
        olds, news = (
            _templates(whose, output, names) for whose, output in zip(sides, outputs, strict=True)
        )
    return "".join(
        line
        for name in names
        for line in difflib.unified_diff(
            olds[name], news[name], f"a/{name}", f"b/{name}", n=_CONTEXT_LINES
        )
    )


def start_app(
    project: Path,
    output: Path,
    environment: str,
    names: Sequence[str],
    python: Path = Path(sys.executable),
    paths: Sequence[Path] = (),
) -> "subprocess.Popen[str]":
    """Starts an app.py, with the feature flags of its cdk.json.

    Args:
        project: the folder of app.py.
        output: gets the templates.
        environment: its name.
        names: models, or patterns.
        python: the interpreter.
        paths: where Python looks for packages first; the folder of app.py counts only if given.
    """
    context = {"env": environment, "models": ",".join(names), "allow-unpublished": "true"}
    with contextlib.suppress(OSError, ValueError, LookupError):  # the CDK CLI has the report
        context = json.loads((project / "cdk.json").read_text("utf-8"))["context"] | context
    variables = {"CDK_OUTDIR": str(output), "CDK_CONTEXT_JSON": json.dumps(context)}
    if paths:
        variables |= {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONSAFEPATH": "1"}
    return subprocess.Popen(  # noqa: S603  # no shell
        [python, _APP], cwd=project, env={**os.environ, **variables},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _refused(message: str) -> UserError:
    return UserError.of(Code.NO_TEMPLATES, message, "Mend that, or leave out `--templates`.")


def _templates(whose: str, output: Path, names: Sequence[str]) -> Mapping[str, list[str]]:
    """Returns the lines of each model's template, with sorted keys and without the commit."""
    found = {}
    for name in names:
        path = output / f"{name}.template.json"
        if not path.is_file():
            raise _refused(f"{whose} wrote no {path.name} to $CDK_OUTDIR")
        content = json.loads(path.read_text("utf-8"))
        content.get("Rules", {}).pop(COMMIT_RULE, None)
        text = json.dumps(content, indent=1, sort_keys=True)
        found[name] = text.splitlines(keepends=True)
    return found
