"""Rules about LMI containers; the first says whether there is such an image at all."""

from slipway.planning.families.lmi.rules import (
    accelerators,
    batching,
    options,
    partitioning,
    serving,
)
from slipway.planning.partial import rules_of

RULES = rules_of(
    serving,
    accelerators,
    batching,
    options,
    partitioning,
)
