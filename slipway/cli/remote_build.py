"""What a build runs: publishes one model, and leaves the result in the artifact bucket.

The build's variables name the model and the environment. Progress goes to standard error, which is
the build's log. The lock is not written: the command that follows the build writes it.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from slipway.access import open_own_access
from slipway.cli.output import print_error
from slipway.cli.publish_progress import ProgressBar
from slipway.codes.code import Code
from slipway.errors import Problem, UserError
from slipway.planning.remote_place import ENVIRONMENT, MODEL
from slipway.project import Project
from slipway.publishing.publish import make
from slipway.publishing.remote.result import made_result, problem_result, result_key

_BUILD_ID = "CODEBUILD_BUILD_ID"


def main(root: Path, variables: Mapping[str, str]) -> int:
    project = Project(root, policies=None)  # their Python is not in the build
    environment = project.environment(variables[ENVIRONMENT])
    access = open_own_access(environment)
    try:
        with ProgressBar() as progress:
            made = make(project, variables[MODEL], environment, access, progress)
    except UserError as error:
        told = UserError([_in_a_build(problem) for problem in error.problems])
        print_error(told, as_json=False)
        result, code = problem_result(told), 1
    else:
        result, code = made_result(made), 0
    access.client("s3").put_object(
        Bucket=environment.artifact_bucket,
        Key=result_key(variables[_BUILD_ID]),
        Body=result,
        ContentType="application/json",
    )
    return code


def _in_a_build(problem: Problem) -> Problem:
    if problem.code is not Code.NO_DISK_SPACE:
        return problem
    return replace(
        problem,
        remedy="Set `remote_publishing.compute` to a type with a larger disk, or put the weights "
        "into S3 and name them with `source: s3`: those need no disk.",
    )


if __name__ == "__main__":
    sys.exit(main(Path.cwd(), os.environ))
