"""Stands in for DeepSpeed."""

import sys

import torch

from tests.containers.lmi import libraries
from tests.containers.lmi.real.stand_ins.journal import JOURNAL

sys.modules[__name__] = libraries.deepspeed(JOURNAL, torch)
