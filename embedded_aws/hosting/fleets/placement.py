"""Where copies of inference components are placed. Pure functions.

A copy gets a part of one instance: CPU cores, accelerators and memory, as its
ComputeResourceRequirements say. The sizes of instances are EC2's, in moto's recording. AWS keeps a
part of the memory for itself. Its size is not documented, so all of it is available here.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from moto.ec2.models.instance_types import INSTANCE_TYPES

from slipway.embedded_aws.hosting.fleets.machine import Machine

# https://github.com/huggingface/skills, hf-cloud-sagemaker (read 2026-11-24) quotes it.
TOO_SMALL = (
    "There is not enough hardware resources on the instances for this endpoint to create a copy of "
    "the inference component."
)


@dataclass(frozen=True)
class Size:
    """Resources of an instance, or of a copy; accelerators are GPUs or Neuron devices."""

    cores: float
    accelerators: float
    memory_mb: float

    def holds(self, part: "Size") -> bool:
        return (
            part.cores <= self.cores
            and part.accelerators <= self.accelerators
            and part.memory_mb <= self.memory_mb
        )

    def without(self, part: "Size") -> "Size":
        return Size(
            self.cores - part.cores,
            self.accelerators - part.accelerators,
            self.memory_mb - part.memory_mb,
        )


class Copy(NamedTuple):
    """A copy of a component, and its instance; None before it is placed."""

    component: str
    size: Size
    machine: Machine | None = None


def size_of_instance(instance_type: str) -> Size | None:
    """Returns the resources of an instance type; None if EC2's recording lacks the type."""
    facts = INSTANCE_TYPES.get(instance_type.removeprefix("ml."))
    if facts is None:
        return None
    devices = [
        *((facts.get("GpuInfo") or {}).get("Gpus") or ()),
        *((facts.get("NeuronInfo") or {}).get("NeuronDevices") or ()),
    ]
    return Size(
        float(facts["VCpuInfo"]["DefaultVCpus"]),
        float(sum(device["Count"] for device in devices)),
        float(facts["MemoryInfo"]["SizeInMiB"]),
    )


def size_of_copy(requirements: Mapping[str, Any]) -> Size:
    return Size(
        float(requirements.get("NumberOfCpuCoresRequired", 0)),
        float(requirements.get("NumberOfAcceleratorDevicesRequired", 0)),
        float(requirements["MinMemoryRequiredInMb"]),
    )


def place(
    instance: Size | None,
    machines: Sequence[Machine],
    copies: Sequence[Copy],
    wanted: Copy,
    scheduling: Mapping[str, Any],
) -> Machine | None:
    """Returns the instance that a further copy is placed on; None without room.

    AWS documents no placement without a SchedulingConfig. Here the first instance with room has it.
    If the resources of one instance are unknown, it holds all.
    """
    on = Counter(copy.machine for copy in copies if copy.machine is not None)
    room = [each for each in machines if _holds(instance, copies, each, wanted.size)]
    own = Counter(
        copy.machine
        for copy in copies
        if copy.machine is not None and copy.component == wanted.component
    )
    balance, zones = scheduling.get("AvailabilityZoneBalance"), {each.zone for each in machines}
    if balance is not None:
        by_zone = Counter(machine.zone for machine in own.elements())
        most = max(balance.get("MaxImbalance", 0), imbalance(by_zone, zones) - 1)
        balanced = (e for e in room if imbalance(by_zone + Counter([e.zone]), zones) <= most)
        # PERMISSIVE: without a balanced place, any other.
        room = list(balanced) or room
    strategy = scheduling.get("PlacementStrategy")
    if strategy == "SPREAD":
        return min(room, key=lambda each: (own[each], on[each]), default=None)
    if strategy == "BINPACK":
        return max(room, key=lambda each: on[each], default=None)
    return next(iter(room), None)


def _holds(instance: Size | None, copies: Sequence[Copy], machine: Machine, size: Size) -> bool:
    if instance is None:
        return True
    for copy in copies:
        if copy.machine is machine:
            instance = instance.without(copy.size)
    return instance.holds(size)


def imbalance(copies: Mapping[int, int], zones: Iterable[int]) -> int:
    """Returns how many copies one zone has more than another."""
    counts = [copies.get(zone, 0) for zone in zones]
    return max(counts, default=0) - min(counts, default=0)


def emptied(
    instance: Size | None, copies: Sequence[Copy], scheduling: Mapping[str, Mapping[str, Any]]
) -> list[Copy] | None:
    """Returns the copies after the instance with the fewest gave its copies to the others.

    So managed instance scaling releases more instances. Copies move without a restart, as they do
    in an update of the endpoint. A move must not increase the imbalance of a component that
    balances its zones: botocore's ProductionVariantManagedInstanceScalingScaleInPolicy, 1.44.

    Returns None if they do not fit there, or if the balance of a component would suffer.

    Args:
        instance: resources of one instance; None if they are unknown.
        copies: every copy, each on its instance.
        scheduling: SchedulingConfig, by the name of the component.
    """
    counts = Counter(copy.machine for copy in copies if copy.machine is not None)
    if len(counts) < 2:
        return None
    leaving = min(counts, key=lambda machine: counts[machine])
    others = [machine for machine in counts if machine is not leaving]
    found = [copy for copy in copies if copy.machine is not leaving]
    moved: list[Copy] = []
    for copy in copies:
        if copy.machine is leaving:
            # The zones are compared below, and packing is the purpose.
            machine = place(instance, others, found, copy, {"PlacementStrategy": "BINPACK"})
            if machine is None:
                return None
            found.append(copy := copy._replace(machine=machine))
        moved.append(copy)
    zones = {machine.zone for machine in counts}
    for name, config in scheduling.items():
        before, after = (
            imbalance(
                Counter(c.machine.zone for c in each if c.machine and c.component == name), zones
            )
            for each in (copies, moved)
        )
        if "AvailabilityZoneBalance" in config and after > before:
            return None
    return moved
