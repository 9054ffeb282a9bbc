"""Neuron: Slipway's own container for Inferentia and Trainium, which serves encoders."""

from slipway.planning.families.family import Family
from slipway.planning.families.neuron import advice, rules
from slipway.planning.families.neuron.deployment import Neuron
from slipway.planning.families.neuron.hardware import image_bases
from slipway.planning.partial import rules_of

FAMILY = Family(Neuron, rules_of(rules), rules_of(advice), image_bases)
