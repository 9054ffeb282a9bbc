"""Custom: an image of the user's own that keeps SageMaker's contract."""

from slipway.planning.families.custom import advice, rules
from slipway.planning.families.custom.deployment import Custom
from slipway.planning.families.family import Family
from slipway.planning.partial import rules_of

FAMILY = Family(Custom, rules_of(rules), rules_of(advice))
