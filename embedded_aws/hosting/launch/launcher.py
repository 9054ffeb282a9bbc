"""The interface through which a variant starts its container: as a process, or in its image."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from embedded_aws.processes.process import SupervisedProcess


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """One container, besides its image.

    Args:
        name: unique on this machine.
        declared: the model's Environment.
        port: loopback port of this machine at which the container answers.
        home: a directory of the container's own.
    """

    name: str
    declared: Mapping[str, str]
    region: str
    port: int
    model_directory: Path
    home: Path
    is_isolated: bool


# Starts a container and returns at once. The function gets every line of output (no line end), from
# another thread. The number is the time from SIGTERM to SIGKILL in seconds.
Launch = Callable[[ContainerSpec, Callable[[str], None], float], SupervisedProcess]


class Launcher(Protocol):
    """Knows how the containers of images are started."""

    def find(self, image: str) -> Launch:
        """Returns the function that starts containers of an image.

        Raises:
            CannotLaunchError: nothing can be started for it.
        """

    def check(self, image: str, backends: Sequence[str]) -> None:
        """Checks whether a container of an image could serve here.

        Raises:
            CannotLaunchError: it could not.
        """
