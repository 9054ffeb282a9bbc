"""The interface through which publishing reports its progress."""

from typing import Protocol


class Progress(Protocol):
    """A display of progress."""

    def start(self, total_bytes: int, activity: str = "uploading") -> None:
        """Begins an activity of that many bytes."""

    def advance(self, size_bytes: int) -> None:
        """Adds finished bytes; a download that begins again takes some back."""

    def note(self, line: str) -> None:
        """Shows a line that stays visible."""

    def job(self, name: str, state: str, elapsed_seconds: float) -> None:
        """Shows the state of a training job or a build, each time that it is checked.

        `state` is SageMaker's secondary status, or the build's phase.
        """
