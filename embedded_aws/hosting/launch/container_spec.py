"""What a variant says of its container to start it: as a process, or in its image."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from slipway.embedded_aws.processes.process import SupervisedProcess


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
