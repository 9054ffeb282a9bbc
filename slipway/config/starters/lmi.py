"""A first config of the LMI container."""

import typing

from slipway.config.sections.serving.lmi import LmiServing
from slipway.config.starters.starter import Starter

FRAMEWORKS: tuple[str, ...] = typing.get_args(LmiServing.model_fields["framework"].annotation)


STARTER = Starter(
    # What a checkpoint says decides more than the instance type.
    lambda answers, _: dict(answers.serving),
    endpoint={
        "container_startup_health_check_timeout_seconds": 1800,
        "network_isolation": False,
    },
    notes={
        "network_isolation": "The container copies the weights from S3 itself.",
        "container_startup_health_check_timeout_seconds": (
            "The weights are copied and loaded within it."
        ),
    },
    options=("framework",),
    choices={"framework": FRAMEWORKS},
)
