"""LMI: DJL Serving stands for AWS's images, and for Slipway's images on top of them."""

import os
from collections.abc import Mapping
from pathlib import Path

from slipway.embedded_aws.hosting.families.lmi import djl_serving
from slipway.embedded_aws.hosting.families.program import ContainerProgram

_ENVIRONMENT = djl_serving.image_environment(os.environ)


def programs(sources: Path) -> Mapping[str, ContainerProgram]:
    handlers = sources / "containers" / "lmi" / "handler"
    return {
        "djl-inference": ContainerProgram(
            djl_serving.COMMAND, _ENVIRONMENT, tag_environment=djl_serving.tag_environment
        ),
        "slipway/lmi": ContainerProgram(
            djl_serving.COMMAND,
            {**_ENVIRONMENT, "PYTHONPATH": str(handlers)},
            tag_environment=djl_serving.tag_environment,
        ),
    }
