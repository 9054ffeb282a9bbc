"""What the deploy of a plan would do to what is deployed, or to what another commit deploys."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from slipway.access import Access
from slipway.codes.code import Code
from slipway.config.names import CONFIG_DIRECTORY
from slipway.errors import UserError
from slipway.git import commit_of, unpack
from slipway.image_sources import IMAGE_SOURCES
from slipway.operations.status import find_status
from slipway.planning.consequences import Consequences, consequences
from slipway.planning.plan import DeploymentPlan
from slipway.project import Project

# Samples and weights are larger, and a plan needs only their sizes.
_LARGEST_BYTES = 10_000_000
_READ_WHOLE = (f"{CONFIG_DIRECTORY}/", *chain.from_iterable(IMAGE_SOURCES.values()))


def compare_with_commit(
    project: Project, plan: DeploymentPlan, ref: str, *, allow_unpublished: bool
) -> Consequences:
    """Compares a plan with the plan of a branch, a tag or a commit; raises `UserError`."""
    name = plan.config.name
    with project_at(project, ref) as other:
        try:
            there = other.environment(plan.environment.name)
            before = other.plan(name, there, allow_unpublished=allow_unpublished)
            return consequences(before, plan)
        except UserError as error:
            raise UserError.of(
                Code.NO_PLAN_THERE,
                f"{ref} has no plan of {name} in `{plan.environment.name}`: "
                f"{error.problems[0].message}",
                "Name a commit that deploys the model.",
            ) from None


@contextmanager
def project_at(project: Project, ref: str, *, is_run: bool = False) -> Iterator[Project]:
    """Gives a project as it was at a branch, a tag or a commit; raises `UserError` without it.

    With `is_run` its app.py runs, which may read any file. Plans read no large ones.
    """
    commit = commit_of(project.root, ref)
    with tempfile.TemporaryDirectory(prefix="slipway-base-") as folder:
        # With `./`, git takes the project, which may be a folder of a repository.
        unpack(
            project.root, f"{commit}:./", Path(folder),
            lambda path, size: is_run or size <= _LARGEST_BYTES or path.startswith(_READ_WHOLE),
        )  # fmt: skip
        # Policies judge the change. Another commit's are code that nobody here has chosen to run.
        yield Project(Path(folder), policies=None)


def compare_with_deployed(plan: DeploymentPlan, access: Access) -> Consequences:
    """Compares a plan with the endpoint in the account; raises `UserError` if there is none."""
    host = plan.endpoint_name if plan.host else None
    found = find_status(plan.stack_name, access, plan=plan, log_line_count=0, host=host)
    if (effects := found.consequences(plan)) is None:
        if found.obstacle is not None:
            raise UserError([found.obstacle])
        raise UserError.of(
            Code.NOT_DEPLOYED,
            f"there is nothing to compare with: {plan.endpoint_name} does not serve",
            f"`slipway status {plan.config.name} --env {plan.environment.name}` says why.",
        )
    return effects
