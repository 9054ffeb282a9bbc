"""The network of an endpoint: the config's own, or the environment's."""

from dataclasses import dataclass

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig

# The foundation's parameter in SSM with the id of the security group that it makes.
SECURITY_GROUP_ID = "security-group-id"


@dataclass(frozen=True)
class VpcPlan:
    """The network that the containers are attached to; no groups mean the foundation's own one."""

    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]


def vpc_plan(config: ModelConfig, environment: Environment) -> VpcPlan | None:
    """Returns the network of the config, or of the environment; None for SageMaker's own."""
    own, shared = config.endpoint.vpc, environment.network
    groups = () if shared is None else shared.security_group_ids
    if own is not None:
        return VpcPlan(own.subnet_ids, own.security_group_ids or groups)
    return None if shared is None else VpcPlan(shared.subnet_ids, groups)
