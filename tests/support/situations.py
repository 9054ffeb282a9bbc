"""Situations of a config, for tests of one family's planning."""

from dataclasses import replace
from typing import TypeVar

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.facts.instances import InstanceFacts
from slipway.planning.families import situation_of
from slipway.planning.families.lmi.situation import Lmi
from slipway.planning.families.neuron.situation import Neuron
from slipway.planning.lock import inputs_digest
from slipway.planning.situation import Situation
from tests.support.projects import LOCAL, PRODUCTION

SituationT = TypeVar("SituationT", bound=Situation)


def lmi(config: ModelConfig, environment: Environment = LOCAL) -> Lmi:
    return _of(Lmi, config, environment)


def neuron(config: ModelConfig, environment: Environment = LOCAL) -> Neuron:
    return _of(Neuron, config, environment)


def digest_of(config: ModelConfig, artifacts: str) -> str:
    return inputs_digest(situation_of(config, LOCAL if artifacts == "sample" else PRODUCTION))


def _of(kind: type[SituationT], config: ModelConfig, environment: Environment) -> SituationT:
    situation = situation_of(config, environment)
    assert isinstance(situation, kind)
    return situation


def on_instance(situation: SituationT, instance: InstanceFacts) -> SituationT:
    placements = tuple(replace(each, instance=instance) for each in situation.placements)
    return replace(situation, placements=placements)
