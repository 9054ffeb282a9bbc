"""Moves copies together, so that managed instance scaling releases more instances.

botocore's documentation of ProductionVariantManagedInstanceScalingScaleInPolicy, 1.44: a move must
not increase the imbalance of a component that balances its zones. Here copies move without a
restart, as they do in an update of the endpoint.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from slipway.embedded_aws.hosting.fleets.placement import Copy, Size, imbalance, place


def emptied(
    instance: Size | None, copies: Sequence[Copy], scheduling: Mapping[str, Mapping[str, Any]]
) -> list[Copy] | None:
    """Returns the copies after the instance with the fewest gave its copies to the others.

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
