"""Publishes of a test's project, with progress that is kept to be looked at."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slipway.access import Access
from slipway.config.environments import Environment
from slipway.project import Project
from slipway.publishing.manifest import Manifest, Snapshot
from slipway.publishing.publish import Published, publish
from tests.support.projects import LOCAL


class Progress:
    def __init__(self) -> None:
        self.totals: list[tuple[str, int]] = []
        self.sizes: defaultdict[str, list[int]] = defaultdict(list)
        self.activity = ""
        self.done_bytes = 0
        self.notes: list[str] = []

    def start(self, total_bytes: int, activity: str = "uploading") -> None:
        self.totals.append((activity, total_bytes))
        self.activity, self.done_bytes = activity, 0

    def advance(self, size_bytes: int) -> None:
        self.sizes[self.activity].append(size_bytes)
        self.done_bytes += size_bytes

    def note(self, line: str) -> None:
        self.notes.append(line)

    def job(self, name: str, state: str, elapsed_seconds: float) -> None:
        raise AssertionError("nothing is compiled here")

    @property
    def uploads(self) -> tuple[list[int], list[int]]:
        """The bytes of each upload, and of each file that was sent."""
        totals = [total for activity, total in self.totals if activity == "uploading"]
        return totals, sorted(self.sizes["uploading"])


class Changing(Progress):
    """Changes a file at one step of a publish."""

    def __init__(self, step: str, change: Callable[[], object]) -> None:
        super().__init__()
        self._step = step
        self._change = change

    def start(self, total_bytes: int, activity: str = "uploading") -> None:
        super().start(total_bytes, activity)
        if f"{activity} begins" == self._step:
            self._change()

    def advance(self, size_bytes: int) -> None:
        if self._step == f"{size_bytes} bytes were sent" and self.activity == "uploading":
            self._change()


class Asked:
    """The requests to S3 that one access makes."""

    def __init__(self, access: Access) -> None:
        self.keys: list[tuple[str, str]] = []
        access._session.events.register("before-parameter-build.s3", self._note)

    def _note(self, model: Any, params: dict[str, Any], **_: Any) -> None:
        self.keys.append((model.name, str(params.get("Key", ""))))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.keys]


def run(
    root: Path,
    access: Access,
    environment: Environment = LOCAL,
    progress: Progress | None = None,
    *,
    name: str = "tiny",
    verify: bool = False,
) -> Published:
    return publish(Project(root), name, environment, access, progress or Progress(), verify=verify)


def manifest_of(root: Path) -> Manifest:
    return Snapshot.of(root / "samples" / "tiny", "samples/tiny").manifest
