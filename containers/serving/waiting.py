"""How long what waits will wait, judged by how fast the model has been lately."""

from typing import Final

# With fewer, the first requests of a process would decide.
_LEAST_COMPLETIONS: Final = 16
# What an input counts after another was completed: the last few dozen decide.
_DECAY: Final = 0.97


class WaitEstimate:
    """The time that the model takes per input while it is busy, other inputs beside it or not."""

    def __init__(self) -> None:
        self._busy_seconds = 0.0
        self._completed = 0.0
        self._completions = 0

    def record(self, *, busy_seconds: float, completed: int) -> None:
        """Takes the measure of a while in which the model was busy.

        Args:
            busy_seconds: its length.
            completed: inputs that were finished by its end; it may be none.
        """
        decay = _DECAY**completed
        self._busy_seconds = self._busy_seconds * decay + busy_seconds
        self._completed = self._completed * decay + completed
        self._completions += completed

    def seconds(self, inputs: int) -> float:
        """Returns how long that many inputs will take; 0 while too little is known."""
        if self._completions < _LEAST_COMPLETIONS:
            return 0.0
        return inputs * self._busy_seconds / self._completed
