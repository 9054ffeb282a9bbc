"""How the templates of two trees differ: each tree's own app writes them, as the CDK CLI has it."""

import contextlib
import difflib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slipway.codes.code import Code
from slipway.config.names import COMMIT_RULE
from slipway.errors import UserError

_APP = "app.py"
_CONTEXT_LINES = 2


@dataclass(frozen=True)
class App:
    """An app.py that writes templates; `remedy` is for one that ends with an error.

    `paths` are where Python looks for packages first; the folder of app.py counts only if given.
    """

    whose: str
    root: Path
    remedy: str = "Mend that, or leave out `--templates`."
    python: Path = Path(sys.executable)
    paths: tuple[Path, ...] = ()

    def start(self, output: Path, environment: str, names: Sequence[str]) -> subprocess.Popen[str]:
        """Starts it, with the feature flags of its cdk.json."""
        context = {"env": environment, "models": ",".join(names), "allow-unpublished": "true"}
        with contextlib.suppress(OSError, ValueError, LookupError):  # the CDK CLI has the report
            content = json.loads((self.root / "cdk.json").read_text("utf-8"))
            context = content["context"] | context
        variables = {"CDK_OUTDIR": str(output), "CDK_CONTEXT_JSON": json.dumps(context)}
        if self.paths:
            found = os.pathsep.join(map(str, self.paths))
            variables |= {"PYTHONPATH": found, "PYTHONSAFEPATH": "1"}
        return subprocess.Popen(  # noqa: S603  # no shell
            [self.python, _APP], cwd=self.root, env={**os.environ, **variables},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def refused(self, message: str) -> UserError:
        return UserError.of(Code.NO_TEMPLATES, f"{self.whose} {message}", self.remedy)


@contextmanager
def synthesised(
    apps: Sequence[App], environment: str, names: Sequence[str]
) -> Iterator[Sequence[Path]]:
    """Gives the folders with what apps write of models, or patterns; raises `UserError`."""
    for app in apps:
        if not (app.root / _APP).is_file():
            raise app.refused("is missing, which writes the templates")
    with tempfile.TemporaryDirectory(prefix="slipway-templates-") as folder:
        outputs = [Path(folder, str(index)) for index, _ in enumerate(apps)]
        # All start at once: most of their time goes by before a stack is made.
        running = [
            app.start(output, environment, names) for app, output in zip(apps, outputs, strict=True)
        ]
        # All end before the folder is removed, also if one of them ends with an error.
        told = [process.communicate()[1].strip() for process in running]
        for app, process, error in zip(apps, running, told, strict=True):
            if process.returncode:
                raise app.refused(f"wrote no templates: {error or process.returncode}")
        yield outputs


def templates_difference(before: Path, after: Path, environment: str, names: Sequence[str]) -> str:
    """Returns how the templates of models in both projects differ, as a unified diff."""
    apps = [App("the base's app.py", before), App("the project's app.py", after)]
    with synthesised(apps, environment, names) as outputs:
        olds, news = (
            _templates(app, output, names) for app, output in zip(apps, outputs, strict=True)
        )
    return "".join(
        line
        for name in names
        for line in difflib.unified_diff(
            olds[name], news[name], f"a/{name}", f"b/{name}", n=_CONTEXT_LINES
        )
    )


def _templates(app: App, output: Path, names: Sequence[str]) -> Mapping[str, list[str]]:
    """Returns the lines of each model's template, with sorted keys and without the commit."""
    found = {}
    for name in names:
        path = output / f"{name}.template.json"
        if not path.is_file():
            raise app.refused(f"wrote no {path.name} to $CDK_OUTDIR")
        content = json.loads(path.read_text("utf-8"))
        content.get("Rules", {}).pop(COMMIT_RULE, None)
        text = json.dumps(content, indent=1, sort_keys=True)
        found[name] = text.splitlines(keepends=True)
    return found
