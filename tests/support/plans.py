"""Plans of configs, and plans that differ from them."""

from dataclasses import replace
from typing import Any

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.planning.families import deployment_of
from slipway.planning.lock import Lock
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resolve import resolve
from tests.support.projects import IMAGE_DIGESTS, LOCAL, lock_for


def plan_for(
    config: ModelConfig,
    environment: Environment = LOCAL,
    lock: Lock | None = None,
    **options: Any,
) -> DeploymentPlan:
    """Plans a config, published unless the lock says otherwise; options are those of `resolve`."""
    used = lock_for(config) if lock is None else lock
    return resolve(
        deployment_of(config, environment), used, **{"image_digests": IMAGE_DIGESTS, **options}
    )


def with_config(plan: DeploymentPlan, **sections: Any) -> DeploymentPlan:
    return replace(plan, config=plan.config.model_copy(update=sections))


def with_endpoint(plan: DeploymentPlan, **fields: Any) -> DeploymentPlan:
    """Returns a plan with other fields of its config's `endpoint`."""
    return with_config(plan, endpoint=plan.config.endpoint.model_copy(update=fields))


def with_environment(plan: DeploymentPlan, **fields: Any) -> DeploymentPlan:
    return replace(plan, environment=plan.environment.model_copy(update=fields))


def renamed(plan: DeploymentPlan, **names: str) -> DeploymentPlan:
    """Returns a plan whose names do not follow from its config, such as `endpoint_name`."""
    return type("RenamedPlan", (DeploymentPlan,), names)(**vars(plan))
