"""Rules about values that cannot work together: each is a function that yields problems.

They report in a second what SageMaker would report after minutes, or not at all. These are the
rules that all serving families share; each family's own are in its folder of `families`.
"""

from slipway.planning.deployment import Rule
from slipway.planning.rules import (
    asynchronous,
    capacity,
    capture,
    compiling,
    components,
    debugging,
    execution_role,
    gpu_scaling,
    guests,
    hardware,
    images,
    isolation,
    metrics,
    names,
    network,
    overrides,
    reservations,
    rollouts,
    routing,
    schedules,
    serving,
    shadows,
    sizes,
    steps,
    volume_key,
    vpc,
)

RULES: tuple[Rule, ...] = (
    *images.RULES,
    *hardware.RULES,
    *isolation.RULES,
    *names.RULES,
    *network.RULES,
    *serving.RULES,
    *compiling.RULES,
    *sizes.RULES,
    *capture.RULES,
    *metrics.RULES,
    *execution_role.RULES,
    *volume_key.RULES,
    *vpc.RULES,
    *capacity.RULES,
    *overrides.RULES,
    *schedules.RULES,
    *steps.RULES,
    *gpu_scaling.RULES,
    *reservations.RULES,
    *components.RULES,
    *debugging.RULES,
    *guests.RULES,
    *rollouts.RULES,
    *routing.RULES,
    *shadows.RULES,
    *asynchronous.RULES,
)
