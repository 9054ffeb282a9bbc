"""Estimates how long a queued input will wait, from the model's recent speed."""

from typing import Final

# With fewer measurements, the first requests of a process would decide the estimate.
_LEAST_COMPLETIONS: Final = 16
# Weight of an input after the next one completed: the last few dozen inputs decide.
_DECAY: Final = 0.97


class WaitEstimate:
    """The time that the model takes per input while it is busy, alone or in a batch."""

    def __init__(self) -> None:
        self._busy_seconds = 0.0
        self._completed = 0.0
        self._completions = 0

    def record(self, *, busy_seconds: float, completed: int) -> None:
        """Records a period in which the model was busy, and the inputs finished by its end."""
        decay = _DECAY**completed
        self._busy_seconds = self._busy_seconds * decay + busy_seconds
        self._completed = self._completed * decay + completed
        self._completions += completed

    def seconds(self, inputs: int) -> float:
        """Returns how long that many inputs will take; 0 while there are too few measurements."""
        if self._completions < _LEAST_COMPLETIONS:
            return 0.0
        return inputs * self._busy_seconds / self._completed
