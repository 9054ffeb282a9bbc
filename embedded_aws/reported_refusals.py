"""Refusals of AWS that public reports saw and that AWS's documents contradict.

The embedded AWS accepts what AWS documents. It makes these refusals only if it was asked to. This
module imports nothing of moto, so that `slipway local` stays quick.
"""

from enum import StrEnum


class ReportedRefusal(StrEnum):
    """One of these refusals, by the name that `slipway local start --refuse` takes."""

    COPY_COUNT_0 = "copy-count-0"
    MIN_INSTANCE_COUNT_0 = "min-instance-count-0"
