"""Assigns NeuronCores to workers.

The runtime reserves cores for a process until the process ends, and two processes never share a
core. By default a process takes all cores. With NEURON_RT_NUM_CORES it takes any cores that are
free when it starts. NEURON_RT_VISIBLE_CORES names the cores, so a restarted worker gets the cores
of the worker that it replaces.
(https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-configurable-parameters.html)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VISIBLE_CORES: Final = "NEURON_RT_VISIBLE_CORES"
NUMBER_OF_CORES: Final = "NEURON_RT_NUM_CORES"


@dataclass(frozen=True)
class Placement:
    """One worker's share of the instance; it has no cores on the CPU."""

    number: int
    cores: range

    @property
    def visible_cores(self) -> str:
        """Returns the cores in the runtime's notation: `3`, or `4-7`."""
        if len(self.cores) == 1:
            return str(self.cores.start)
        return f"{self.cores.start}-{self.cores.stop - 1}"

    def __str__(self) -> str:
        if not self.cores:
            return f"worker {self.number}"
        noun = "NeuronCore" if len(self.cores) == 1 else "NeuronCores"
        return f"worker {self.number} ({noun} {self.visible_cores})"

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        environment = {
            name: value
            for name, value in inherited.items()
            if name not in (VISIBLE_CORES, NUMBER_OF_CORES)
        }
        if self.cores:
            environment[VISIBLE_CORES] = self.visible_cores
        return environment


def placements(workers: int, cores_per_worker: int) -> tuple[Placement, ...]:
    """Returns the placement of each worker; workers get consecutive cores."""
    return tuple(
        Placement(number, range(number * cores_per_worker, (number + 1) * cores_per_worker))
        for number in range(workers)
    )
