"""Slipway's Neuron container."""

from collections.abc import Mapping
from pathlib import Path

from slipway.embedded_aws.hosting.families.program import ContainerProgram, slipways_program


def programs(sources: Path) -> Mapping[str, ContainerProgram]:
    return {"slipway/neuron": slipways_program("neuron", sources)}
