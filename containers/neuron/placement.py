"""Which NeuronCores each worker has.

The runtime reserves cores for a process until it ends, and two processes never share one. Left to
itself a process takes all of them, or with NEURON_RT_NUM_CORES whichever are free at the moment it
starts; NEURON_RT_VISIBLE_CORES names them, so that a worker that is started again gets the cores
that the one before it left.
(https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-configurable-parameters.html)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VISIBLE_CORES: Final = "NEURON_RT_VISIBLE_CORES"
NUMBER_OF_CORES: Final = "NEURON_RT_NUM_CORES"


@dataclass(frozen=True)
class Placement:
    """One worker's share of the instance.

    Attributes:
        number: of the worker, from 0.
        cores: the numbers of its NeuronCores; empty on the CPU.
    """

    number: int
    cores: range

    @property
    def visible_cores(self) -> str:
        """The cores as the runtime reads them: `3`, or `4-7`."""
        if len(self.cores) == 1:
            return str(self.cores.start)
        return f"{self.cores.start}-{self.cores.stop - 1}"

    def __str__(self) -> str:
        if not self.cores:
            return f"worker {self.number}"
        noun = "NeuronCore" if len(self.cores) == 1 else "NeuronCores"
        return f"worker {self.number} ({noun} {self.visible_cores})"

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Returns the variables of the worker's process."""
        environment = {
            name: value
            for name, value in inherited.items()
            if name not in (VISIBLE_CORES, NUMBER_OF_CORES)
        }
        if self.cores:
            environment[VISIBLE_CORES] = self.visible_cores
        return environment


def placements(workers: int, cores_per_worker: int) -> tuple[Placement, ...]:
    """Gives each worker as many cores, one worker's after the other's."""
    return tuple(
        Placement(number, range(number * cores_per_worker, (number + 1) * cores_per_worker))
        for number in range(workers)
    )
