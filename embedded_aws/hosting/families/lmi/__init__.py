"""LMI: DJL Serving stands for AWS's images, and for Slipway's images on top of them."""

import os
from collections.abc import Mapping
from pathlib import Path

from embedded_aws.hosting.families.lmi import djl_serving
from embedded_aws.hosting.families.program import ContainerProgram

_HANDLERS = Path(__file__).resolve().parents[4] / "containers" / "lmi" / "handler"
_ENVIRONMENT = djl_serving.image_environment(os.environ)
PROGRAMS: Mapping[str, ContainerProgram] = {
    "djl-inference": ContainerProgram(
        djl_serving.COMMAND, _ENVIRONMENT, tag_environment=djl_serving.tag_environment
    ),
    # With the handlers from this checkout.
    "slipway/lmi": ContainerProgram(
        djl_serving.COMMAND,
        {**_ENVIRONMENT, "PYTHONPATH": str(_HANDLERS)},
        tag_environment=djl_serving.tag_environment,
    ),
}
