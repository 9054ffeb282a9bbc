"""The interface through which a variant starts its container: as a process, or in its image."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Protocol


class CannotLaunchError(Exception):
    """Nothing can be started for an image; the message says why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The surroundings of one container.

    Args:
        name: unique on this machine.
        declared: the model's Environment.
        region: the endpoint's region.
        port: loopback port of this machine at which the container answers.
        model_directory: the files of /opt/ml/model.
        home: a directory of the container's own.
        is_isolated: whether the model has network isolation.
    """

    name: str
    declared: Mapping[str, str]
    region: str
    port: int
    model_directory: Path
    home: Path
    is_isolated: bool


class Running(Protocol):
    """A container that was started.

    Attributes:
        exited: set when it has ended and its output was read.
    """

    exited: Event

    @property
    def last_lines(self) -> Sequence[str]:
        """Returns the last lines of output, oldest first."""

    @property
    def exit_status(self) -> int | None:
        """Returns its exit status (128 + N for signal N); None while it runs."""

    @property
    def ancestor_id(self) -> int | None:
        """Returns the process whose descendants are the container's; None if it is not known."""

    def request_stop(self) -> None:
        """Begins to stop it; `exited` is set when it has ended."""

    def stop(self) -> None:
        """Stops it and waits until it has ended."""


class Launch(Protocol):
    """Starts containers of one image."""

    def __call__(
        self, placement: Placement, *, on_line: Callable[[str], None], grace_seconds: float
    ) -> Running:
        """Starts a container; returns at once.

        Args:
            placement: its surroundings.
            on_line: called with every line of output (no line end), from another thread.
            grace_seconds: time from SIGTERM to SIGKILL when it is stopped.
        """


class Launcher(Protocol):
    """Knows how the containers of images are started."""

    def find(self, image: str) -> Launch:
        """Returns the function that starts containers of an image.

        Raises:
            CannotLaunchError: nothing can be started for it.
        """

    def check(self, image: str, backends: Sequence[str]) -> None:
        """Checks whether a container of an image could serve here.

        Args:
            image: of a model.
            backends: Triton's back ends that the model needs.

        Raises:
            CannotLaunchError: it could not.
        """
