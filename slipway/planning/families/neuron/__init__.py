"""Neuron: Slipway's own container for Inferentia and Trainium, which serves encoders."""

from slipway.planning.families.family import Family
from slipway.planning.families.neuron.advice import ADVICE
from slipway.planning.families.neuron.deployment import Neuron
from slipway.planning.families.neuron.image import image_bases
from slipway.planning.families.neuron.rules import RULES

FAMILY = Family(Neuron, RULES, ADVICE, image_bases)
