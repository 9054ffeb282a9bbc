"""The CDK app: load -> resolve -> stacks -> synth.

Context: `-c env=NAME` selects the environment (default: local). `-c models=a,b*` limits the app to
those models and their dependencies. `-c allow-unpublished=true` synthesises unpublished models, for
reading and linting.
"""

import sys
from pathlib import Path

import aws_cdk as cdk

from slipway.errors import UserError
from slipway.project import Project
from stacks.assembly import Selection, add_stacks


def main() -> int:
    """Synthesises the app; returns 1 with a report if the project itself is invalid."""
    # The tests run CloudFormation's validation over these stacks. Here it would double the time of
    # every synth, to find errors that no config can cause. The CDK's stack traces lead into its own
    # files, and its CLI shows one above each warning.
    app = cdk.App(builtin_cloud_formation_validation=False, stack_traces=False)
    try:
        add_stacks(app, Project(Path(__file__).parent), Selection.from_context(app.node))
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
