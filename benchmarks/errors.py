"""Why a benchmark ended early."""

from __future__ import annotations


class BenchmarkError(Exception):
    """A measurement cannot be made, or what was measured did not do its work.

    Args:
        message: what happened, with the output of the command that failed.
    """
