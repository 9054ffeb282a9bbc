"""Stands in for FasterTransformer of 0.23: with the engine Python, inside Triton."""

import sys

from tests.containers.lmi import libraries
from tests.containers.lmi.real.stand_ins.journal import JOURNAL

sys.modules[__name__] = libraries.fastertransformer(JOURNAL, "0.23", "gpt2")
