"""Rules about LMI containers; the first says whether there is such an image at all."""

from slipway.planning.families.lmi.rules import (
    accelerators,
    batching,
    engines,
    frameworks,
    image,
    model_families,
    options,
    partitioning,
    serving,
    variables,
)
from slipway.planning.partial import rules_of

RULES = rules_of(
    serving,
    accelerators,
    model_families,
    engines,
    batching,
    frameworks,
    image,
    options,
    partitioning,
    variables,
)
