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
from slipway.local_hint import unset_variables_hint
from slipway.project import Project
from stacks.assembly import Selection, add_stacks


def main() -> int:
    """Synthesises the app; returns 1 with a report if the project itself is invalid."""
    # The tests run CloudFormation's validation over these stacks. Here it would double the time of
    # every synth, to find errors that no config can cause. The CDK's stack traces lead into its own
    # files, and its CLI shows one above each warning.
    app = cdk.App(builtin_cloud_formation_validation=False, stack_traces=False)
    root = Path(__file__).parent
    try:
        selection = Selection.from_context(app.node)
        project = Project(root)
        add_stacks(app, project, selection)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    for name in selection.without_file(project):
        print(f"There is no model_configs/{name}.yaml. `{name}` is a stack alone.", file=sys.stderr)
    if hint := unset_variables_hint(root, selection.environment, os.environ):
        print(hint, file=sys.stderr)
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
