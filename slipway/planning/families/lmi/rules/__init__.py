"""Rules about LMI containers; the first says whether there is such an image at all."""

from slipway.planning.families.lmi.rules import (
    batching,
    frameworks,
    image,
    options,
    partitioning,
    serving,
    variables,
)

RULES = (
    *serving.RULES,
    *batching.RULES,
    *frameworks.RULES,
    *image.RULES,
    *options.RULES,
    *partitioning.RULES,
    *variables.RULES,
)
