"""What a publish says while it works, to whoever shows it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Where progress is shown."""

    def start(self, total_bytes: int, activity: str = "uploading") -> None:
        """Says what begins and how much there is of it."""

    def advance(self, size_bytes: int) -> None:
        """Says that so much more is done; a download that begins again takes some back."""

    def note(self, line: str) -> None:
        """Says one thing worth keeping."""

    def job(self, name: str, state: str, elapsed_seconds: float) -> None:
        """Says how a training job stands, at every look at it."""
