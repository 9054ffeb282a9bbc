"""What a variant says of its container to start it, as a process or in its image, and its port."""

import random
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from slipway.embedded_aws.processes.process import SupervisedProcess

# Below every system's range for outgoing connections (Linux from 32768, macOS from 49152). A free
# port in that range may be taken by a client's connection before the container binds it.
_FIRST, _LAST = 20_000, 29_999


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


class PortPool:
    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._lock = threading.Lock()

    def take(self) -> int:
        """Returns a free port, reserved until `give_back`; raises `OSError` if there is none."""
        with self._lock:
            for port in random.sample(range(_FIRST, _LAST + 1), _LAST - _FIRST + 1):
                if port not in self._taken and _is_free(port):
                    self._taken.add(port)
                    return port
        raise OSError(f"no free port between {_FIRST} and {_LAST}")

    def give_back(self, port: int) -> None:
        with self._lock:
            self._taken.discard(port)


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port whose last connections are still in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # Binds all interfaces, because containers do.
            probe.bind(("0.0.0.0", port))  # noqa: S104  # closed at once, never listens
        except OSError:
            return False
    return True
