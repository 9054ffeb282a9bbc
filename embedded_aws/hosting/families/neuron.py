"""Slipway's Neuron container."""

from collections.abc import Mapping

from embedded_aws.hosting.families.program import ContainerProgram, slipways_program

PROGRAMS: Mapping[str, ContainerProgram] = {"slipway/neuron": slipways_program("neuron")}
