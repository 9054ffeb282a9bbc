"""Refusals of AWS that public reports saw and that AWS's documents contradict.

The embedded AWS accepts what AWS documents. It makes these refusals only if it was asked to. This
module imports nothing of moto, so that `slipway local` stays quick.
"""

from enum import StrEnum


class ReportedRefusal(StrEnum):
    """One of these refusals, by the name that `slipway local start --refuse` takes."""

    COPY_COUNT_0 = "copy-count-0"
    MIN_INSTANCE_COUNT_0 = "min-instance-count-0"

    @property
    def message(self) -> str:
        """Returns AWS's words.

        https://github.com/stdapi-ai/stdapi.ai/issues/43 (2026-08-27, read 2026-11-24) quotes both.
        AWS documents 0 as the minimum of both numbers.
        """
        if self is ReportedRefusal.COPY_COUNT_0:
            return "Inference components copy count an integer larger than 0"
        return "Min instance count needs to be greater than 0 for enabled managed instance scaling"
