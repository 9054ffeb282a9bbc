"""Triton: NVIDIA's server, in Slipway's image with its model, or in AWS's with a user's own."""

from slipway.planning.families.family import Family
from slipway.planning.families.triton import advice, rules
from slipway.planning.families.triton.deployment import Triton, image_bases
from slipway.planning.partial import rules_of

# Every config of the family says its name, and others need no base of it.
FAMILY = Family(Triton, rules_of(rules), rules_of(advice), image_bases, marks_image=b"triton")
