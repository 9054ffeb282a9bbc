"""Slipway's TensorRT container."""

from collections.abc import Mapping
from pathlib import Path

from slipway.embedded_aws.hosting.families.program import ContainerProgram, slipways_program


def programs(sources: Path) -> Mapping[str, ContainerProgram]:
    return {"slipway/tensorrt": slipways_program("tensorrt", sources)}
