"""Slipway's TensorRT container."""

from collections.abc import Mapping

from embedded_aws.hosting.families.program import ContainerProgram, slipways_program

PROGRAMS: Mapping[str, ContainerProgram] = {"slipway/tensorrt": slipways_program("tensorrt")}
