"""Triton: NVIDIA's server, in Slipway's image with its model, or in AWS's with a user's own."""

from slipway.planning.families.family import Family
from slipway.planning.families.triton.advice import ADVICE
from slipway.planning.families.triton.deployment import Triton
from slipway.planning.families.triton.image import image_bases
from slipway.planning.families.triton.rules import RULES

# Every config of the family says its name, and others need no base of it.
FAMILY = Family(Triton, RULES, ADVICE, image_bases, marks_image=b"triton")
