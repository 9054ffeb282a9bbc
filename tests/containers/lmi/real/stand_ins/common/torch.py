"""Stands in for torch."""

import sys

from tests.containers.lmi import libraries
from tests.containers.lmi.real.stand_ins.journal import JOURNAL

sys.modules[__name__] = libraries.torch(JOURNAL)
