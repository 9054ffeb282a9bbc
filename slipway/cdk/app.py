"""The CDK app of a project: load -> resolve -> stacks -> synth."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

import aws_cdk as cdk
from aws_cdk import cx_api

from slipway.cdk.invocable import refused
from slipway.cdk.models import Models
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.full_disk import no_room_problem
from slipway.git import find_commit
from slipway.local_hint import unset_variables_hint
from slipway.policies import Policy
from slipway.project import Project
from slipway.stacks.assembly import ProjectStacks, Selection
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

    Stacks of a team's own go into it as into any app of the CDK. The stacks of models are added
    when the templates are written, without those of models that an `Endpoint` has.

    Args:
        root: the project's folder, a folder in it, or a file in one of them, such as `__file__`.
        policies: that every model has to meet, beside those of environments.yaml. Its stack carries
            what a policy refuses.
        options: of `aws_cdk.App`.

    Attributes:
        env: account and region of the environment, for stacks of a team's own.
        environment_name: name of the environment, for names of such stacks.
        models: the project's models by name.

    Raises:
        UserError: there is no project, the environment or the context is wrong, or another app of
            this program writes into the same folder. A program that does not catch it ends with
            its report on stderr and exit code 1, without a traceback.
    """

    _folders: ClassVar[set[str]] = set()

    def __init__(
        self, root: str | Path, *, policies: Sequence[Policy] = (), **options: Any
    ) -> None:
        sys.excepthook = _report
        # CloudFormation's validation would double the time of every synth, to find errors that no
        # config can cause. Slipway's tests run it. The CDK's stack traces lead into its own files,
        # and its CLI shows one above each warning. Node would write an app that ended in an error.
        defaults = {
            "builtin_cloud_formation_validation": False,
            "stack_traces": False,
            "auto_synth": False,
        }
        super().__init__(**{**defaults, **options})
        if self.outdir in self._folders:
            raise refused(
                Code.MADE_TWICE,
                f"two apps of one program write to {self.outdir}, and the CDK CLI reads one",
                "Make one `App`, and give its stacks to it. In a test, give each its `outdir`.",
            )
        start = Path(root).absolute()
        found = Project.find(start.parent if start.is_file() else start)
        project = replace(found, policies=tuple(policies))
        self._stacks = ProjectStacks(self, project, Selection.from_context(self.node))
        self._folders.add(self.outdir)
        self._is_complete = False
        self.env = self._stacks.target
        self.environment_name = self._stacks.environment.name
        self.models = Models(self._stacks)

    def synth(self, **options: Any) -> cx_api.CloudAssembly:
        """Adds the stacks of the selected models, and writes every template.

        Args:
            options: of `aws_cdk.App.synth`.

        Raises:
            UserError: `-c models=` has a pattern that matches no model.
        """
        if not self._is_complete:
            self._is_complete = True
            self._complete()
        return super().synth(**options)

    def _complete(self) -> None:
        project, selection = self._stacks.project, self._stacks.selection
        self._stacks.add_selected()
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


def stacks_of(app: App) -> ProjectStacks:
    """Returns the stacks that an app adds by itself."""
    return app._stacks
