"""What cannot work together: each rule a function of config and facts, yielding problems.

They say in a second what SageMaker would say after minutes, or not at all.
"""

from __future__ import annotations

from slipway.planning.rules import capacity, hardware, serving
from slipway.planning.rules.situation import Rule

RULES: tuple[Rule, ...] = (*hardware.RULES, *serving.RULES, *capacity.RULES)
