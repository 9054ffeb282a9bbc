"""Rules about values that cannot work together: each is a function that yields problems.

They report in a second what SageMaker would report after minutes, or not at all. These are the
rules that all serving families share; each family's own are in its folder of `families`.
"""

from slipway.planning.partial import rules_of
from slipway.planning.rules import (
    asynchronous,
    capacity,
    components,
    exclusions,
    hardware,
    network,
    rollouts,
    schedules,
    serverless,
    serving,
    sizes,
    surroundings,
)

RULES = rules_of(
    hardware,
    network,
    serving,
    sizes,
    surroundings,
    capacity,
    schedules,
    components,
    rollouts,
    asynchronous,
    serverless,
    exclusions,
)
