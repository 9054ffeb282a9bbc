"""Custom: an image of the user's own that keeps SageMaker's contract."""

from slipway.planning.families.custom.advice import ADVICE
from slipway.planning.families.custom.deployment import Custom
from slipway.planning.families.custom.rules import RULES
from slipway.planning.families.family import Family

FAMILY = Family(Custom, RULES, ADVICE)
