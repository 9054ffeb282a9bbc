"""Rules about values that cannot work together: each is a function that yields problems.

They report in a second what SageMaker would report after minutes, or not at all.
"""

from __future__ import annotations

from slipway.planning.rules import (
    capacity,
    compiling,
    components,
    hardware,
    images,
    isolation,
    lmi,
    lmi_batching,
    lmi_frameworks,
    lmi_image,
    lmi_options,
    lmi_partition,
    lmi_variables,
    names,
    neuron,
    rollouts,
    serving,
    sizes,
)
from slipway.planning.rules.situation import Rule

RULES: tuple[Rule, ...] = (
    *images.RULES,
    *hardware.RULES,
    *lmi.RULES,
    *lmi_batching.RULES,
    *lmi_frameworks.RULES,
    *lmi_image.RULES,
    *lmi_options.RULES,
    *lmi_partition.RULES,
    *lmi_variables.RULES,
    *isolation.RULES,
    *names.RULES,
    *neuron.RULES,
    *serving.RULES,
    *compiling.RULES,
    *sizes.RULES,
    *capacity.RULES,
    *components.RULES,
    *rollouts.RULES,
)
