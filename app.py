"""The CDK app: load -> resolve -> stacks -> synth.

Context: `-c env=NAME` selects the environment (default: local). `-c models=a,b*` limits the app to
those models and their dependencies. `-c allow-unpublished=true` synthesises unpublished models, for
reading and linting.
"""

import os
import sys
from pathlib import Path

import aws_cdk as cdk

from slipway.errors import UserError
from slipway.full_disk import no_room_problem
from slipway.git import find_commit
from slipway.local_hint import unset_variables_hint
from slipway.project import Project
from slipway.stacks.assembly import Selection, add_stacks
from slipway.stacks.model_stack import record_commit


def main() -> int:
    """Synthesises the app; returns 1 with a report if the user can mend what is wrong."""
    try:
        synthesise(Path(__file__).parent)
    except UserError as error:
        print(error, file=sys.stderr)
    # A full disk; of Node's errors jsii hands on the text.
    except (OSError, RuntimeError) as error:
        problem = no_room_problem(error)
        if problem is None:
            raise
        print(problem, file=sys.stderr)
    else:
        return 0
    return 1


def synthesise(root: Path) -> None:
    """Writes the templates of a project.

    Raises:
        UserError: the project itself is invalid.
    """
    # The tests run CloudFormation's validation over these stacks. Here it would double the time of
    # every synth, to find errors that no config can cause. The CDK's stack traces lead into its own
    # files, and its CLI shows one above each warning.
    app = cdk.App(builtin_cloud_formation_validation=False, stack_traces=False)
    selection = Selection.from_context(app.node)
    project = Project(root)
    add_stacks(app, project, selection)
    if commit := find_commit(root, "HEAD"):
        record_commit(app, commit)
    for name in selection.without_file(project):
        print(f"There is no model_configs/{name}.yaml. `{name}` is a stack alone.", file=sys.stderr)
    if hint := unset_variables_hint(root, selection.environment, os.environ):
        print(hint, file=sys.stderr)
    app.synth()


if __name__ == "__main__":
    sys.exit(main())
