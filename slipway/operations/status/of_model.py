"""The status of a model beside what its files say."""

from slipway.access import Access
from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.operations.status.report import Status, find_status
from slipway.planning.consequences import Consequences
from slipway.planning.plan import DeploymentPlan
from slipway.project import Project
from slipway.shared_endpoints import endpoint_name


def find_model_status(
    project: Project, name: str, environment: Environment, access: Access, log_line_count: int
) -> tuple[Status, str | None, Consequences | None]:
    """Returns a model's status, why its files make no plan, and what a deploy of them would do."""
    plan: DeploymentPlan | None = None
    unplanned: str | None = None
    try:
        plan = project.unjudged.plan(name, environment)
    except UserError as error:
        # The endpoint is what was asked about; its files may be in the middle of a change.
        unplanned = error.problems[0].message
    own, endpoint = environment.stack_name(name), endpoint_name(project, name, environment)
    host = None if endpoint == own else endpoint
    found = find_status(own, access, plan=plan, log_line_count=log_line_count, host=host)
    return found, unplanned, None if plan is None else found.consequences(plan)
