"""Deployments of a config, for tests of one family's planning."""

from dataclasses import replace
from typing import TypeVar

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.facts.instances import InstanceFacts
from slipway.planning.deployment import Deployment
from slipway.planning.families import deployment_of
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.neuron.deployment import Neuron
from slipway.planning.lock import inputs_digest
from tests.support.projects import LOCAL, PRODUCTION

DeploymentT = TypeVar("DeploymentT", bound=Deployment)


def lmi(config: ModelConfig, environment: Environment = LOCAL) -> Lmi:
    return _of(Lmi, config, environment)


def neuron(config: ModelConfig, environment: Environment = LOCAL) -> Neuron:
    return _of(Neuron, config, environment)


def digest_of(config: ModelConfig, artifacts: str) -> str:
    return inputs_digest(deployment_of(config, LOCAL if artifacts == "sample" else PRODUCTION))


def _of(kind: type[DeploymentT], config: ModelConfig, environment: Environment) -> DeploymentT:
    deployment = deployment_of(config, environment)
    assert isinstance(deployment, kind)
    return deployment


def on_instance(deployment: DeploymentT, instance: InstanceFacts) -> DeploymentT:
    placements = tuple(replace(each, instance=instance) for each in deployment.placements)
    return replace(deployment, placements=placements)
