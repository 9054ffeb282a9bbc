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

RULES = (
    *serving.RULES,
    *accelerators.RULES,
    *model_families.RULES,
    *engines.RULES,
    *batching.RULES,
    *frameworks.RULES,
    *image.RULES,
    *options.RULES,
    *partitioning.RULES,
    *variables.RULES,
)
