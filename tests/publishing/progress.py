"""Progress that is kept to be looked at."""

from collections.abc import Callable
from dataclasses import dataclass, field


class Progress:
    def __init__(self) -> None:
        self.totals: list[tuple[str, int]] = []
        self.done_bytes = 0
        self.notes: list[str] = []

    def start(self, total_bytes: int, activity: str = "uploading") -> None:
        self.totals.append((activity, total_bytes))
        self.done_bytes = 0

    def advance(self, size_bytes: int) -> None:
        self.done_bytes += size_bytes

    def note(self, line: str) -> None:
        self.notes.append(line)

    def job(self, name: str, state: str, elapsed_seconds: float) -> None:
        raise AssertionError("nothing is compiled here")


class Changing(Progress):
    """Changes a file at one step of a publish."""

    def __init__(self, step: str, change: Callable[[], object]) -> None:
        super().__init__()
        self._step = step
        self._change = change
        self._activity = ""

    def start(self, total_bytes: int, activity: str = "uploading") -> None:
        self._activity = activity
        if f"{activity} begins" == self._step:
            self._change()

    def advance(self, size_bytes: int) -> None:
        if self._step == f"{size_bytes} bytes were sent" and self._activity == "uploading":
            self._change()


@dataclass
class RecordedProgress:
    """Remembers what it was told."""

    totals: list[int] = field(default_factory=list)
    advanced: list[int] = field(default_factory=list)
    hashed_bytes: int = 0
    activity: str = ""

    def start(self, total_bytes: int, activity: str = "uploading") -> None:
        self.activity = activity
        if activity == "uploading":
            self.totals.append(total_bytes)

    def advance(self, size_bytes: int) -> None:
        if self.activity == "hashing":
            self.hashed_bytes += size_bytes
        elif self.activity == "uploading":
            self.advanced.append(size_bytes)

    def note(self, line: str) -> None:
        raise AssertionError(f"there is nothing to say of files: {line}")

    def job(self, name: str, state: str, elapsed_seconds: float) -> None:
        raise AssertionError(f"no training job was to be run: {name}")
