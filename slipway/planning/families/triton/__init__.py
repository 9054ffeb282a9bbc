"""Triton: AWS's image of NVIDIA's server, with a model repository."""

from slipway.planning.families.family import Family
from slipway.planning.families.triton.advice import ADVICE
from slipway.planning.families.triton.rules import RULES
from slipway.planning.families.triton.situation import Triton

FAMILY = Family(Triton, RULES, ADVICE)
