"""Images of the user's own: no program stands for any, so such an endpoint fails with a reason."""

from collections.abc import Mapping
from pathlib import Path

from slipway.embedded_aws.hosting.families.program import ContainerProgram


def programs(sources: Path) -> Mapping[str, ContainerProgram]:  # noqa: ARG001  # Slipway's
    """Returns none."""
    return {}
