"""The CDK app of a project: load -> resolve -> stacks -> synth."""

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import aws_cdk as cdk
from aws_cdk import cx_api

from slipway.errors import UserError
from slipway.full_disk import no_room_problem
from slipway.git import find_commit
from slipway.local_hint import unset_variables_hint
from slipway.project import Project
from slipway.stacks.assembly import Selection, add_stacks
from slipway.stacks.model_stack import record_commit


class App(cdk.App):
    """The CDK app of a project: its foundation, its images, and a stack for each model.

    Context: `-c env=NAME` selects the environment (default: local). `-c models=a,b*` limits the app
    to those models and their dependencies. `-c allow-unpublished=true` synthesises unpublished
    models, for reading and linting.

    Example:
        The whole app.py of a project without stacks of its own::

            from slipway.cdk import App

            App(__file__).synth()

    Args:
        root: the project's folder, or a file in it, such as `__file__`.
        options: of `aws_cdk.App`.

    Raises:
        UserError: there is no project, or the context is wrong. A script that does not catch it
            ends with its report on stderr and exit code 1, without a traceback.
    """

    def __init__(self, root: str | Path, **options: Any) -> None:
        sys.excepthook = _report
        # CloudFormation's validation would double the time of every synth, to find errors that no
        # config can cause. Slipway's tests run it. The CDK's stack traces lead into its own files,
        # and its CLI shows one above each warning.
        defaults = {"builtin_cloud_formation_validation": False, "stack_traces": False}
        super().__init__(**{**defaults, **options})
        start = Path(root).resolve()
        self._project = Project.find(start.parent if start.is_file() else start)
        self._selection = Selection.from_context(self.node)
        self._is_complete = False

    def synth(self, **options: Any) -> cx_api.CloudAssembly:
        """Adds the stacks of the selected models, and writes every template.

        Args:
            options: of `aws_cdk.App.synth`.

        Raises:
            UserError: the environment is invalid, or a pattern matches no model.
        """
        if not self._is_complete:
            self._is_complete = True
            self._complete()
        return super().synth(**options)

    def _complete(self) -> None:
        project, selection = self._project, self._selection
        add_stacks(self, project, selection)
        if commit := find_commit(project.root, "HEAD"):
            record_commit(self, commit)
        for name in selection.without_file(project):
            _say(f"There is no model_configs/{name}.yaml. `{name}` is a stack alone.")
        if hint := unset_variables_hint(project.root, selection.environment, os.environ):
            _say(hint)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _report(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Prints the report of a user's error; of any other exception, the traceback."""
    problem: BaseException | None = error
    if isinstance(error, OSError | RuntimeError):
        # A full disk; of Node's errors jsii hands on the text.
        problem = no_room_problem(error)
    if isinstance(problem, UserError):
        _say(str(problem))
    else:
        sys.__excepthook__(kind, error, traceback)
