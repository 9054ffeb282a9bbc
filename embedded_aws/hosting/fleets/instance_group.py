"""The instances of a variant that hosts inference components.

They are names: the copies are processes of this machine. With managed instance scaling their number
follows the copies. An instance without a copy is released ten minutes later, as AWS's walk-through
describes it:
https://aws.amazon.com/blogs/machine-learning/unlock-cost-savings-with-the-new-scale-down-to-zero-feature-in-amazon-sagemaker-inference/
(read 2026-11-24). A start takes no time here, and minutes in AWS.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from slipway.embedded_aws.hosting.fleets.machine import Machine
from slipway.embedded_aws.hosting.fleets.placement import Size, size_of_instance
from slipway.embedded_aws.hosting.fleets.variant import Variant

IDLE_RELEASE_SECONDS = 600.0
# The API documents no default of MaxInstanceCount; its quota limits it.
_UNBOUNDED = 10_000


class InstanceGroup(Variant):
    """The instances of one variant. They have no process: the components start and stop copies.

    Attributes:
        instance_size: resources of one instance; None if they are unknown.
        settings_of_models: members of the configuration that apply to every model on the instances.
        most_consolidated: instances that are emptied at a time, where copies are moved together.
        prefixes: PrefixAwareRoutingConfig; None with another routing.
        idle_since_seconds: since when there are more instances than needed; None if there are not.
    """

    def __init__(
        self,
        declared: Mapping[str, Any],
        config: Mapping[str, Any],
        config_name: str,
        without_capacity: Collection[str] = (),
    ) -> None:
        super().__init__(declared, config_name, without_capacity)
        self.instance_size: Size | None = size_of_instance(self.instance_type)
        scaling = declared.get("ManagedInstanceScaling", {})
        self.lowest_count = self.highest_count = self.instance_count
        if scaling.get("Status") == "ENABLED":
            self.lowest_count = int(scaling.get("MinInstanceCount", self.instance_count))
            self.highest_count = int(scaling.get("MaxInstanceCount", _UNBOUNDED))
        self.settings_of_models = {
            name: config[name]
            for name in ("ExecutionRoleArn", "VpcConfig", "EnableNetworkIsolation")
            if name in config
        }
        self.role = config.get("ExecutionRoleArn")
        self.volume_key: str | None = config.get("KmsKeyId")
        routing = declared.get("RoutingConfig", {})
        self.prefixes: Mapping[str, int] | None = routing.get("PrefixAwareRoutingConfig")
        self.is_least_outstanding = routing.get("RoutingStrategy") == "LEAST_OUTSTANDING_REQUESTS"
        self.idle_since_seconds: float | None = None
        self._machines: list[Machine] = []
        policy = scaling.get("ScaleInPolicy", {})
        self._consolidates: bool = policy.get("Strategy") == "CONSOLIDATION"
        # botocore's documentation has the defaults.
        self.most_consolidated: int = policy.get("MaximumStepSize", 1)
        self._cooldown_seconds: int = 60 * policy.get("CooldownInMinutes", 20)
        self._seen: tuple[Any, float] = (None, 0.0)

    def is_due(self, copies: Counter[str], now_seconds: float) -> bool:
        """Returns whether copies may be moved together: their numbers stayed for the cooldown."""
        if self._seen[0] != copies:
            self._seen = (copies, now_seconds)
        return self._consolidates and now_seconds - self._seen[1] >= self._cooldown_seconds

    def machines(self, occupied: Iterable[Machine]) -> list[Machine]:
        """Returns the instances, as many as are counted; those with copies stay.

        An update of the endpoint makes another group, which takes the instances over with their
        copies.
        """
        busy = dict.fromkeys(occupied)
        found = list(dict.fromkeys([*busy, *self._machines]))
        count = max(self.instance_count, len(busy))
        while len(found) < count:
            found.append(next_machine(found))
        for released in found[count:]:
            released.release()
        self._machines = found[:count]
        return list(self._machines)

    def follow(self, needed: int, now_seconds: float) -> None:
        """Some are missing after an update of the endpoint, whose new instances take the copies."""
        kept = max(min(needed, self.highest_count), self.lowest_count)
        if kept >= self.instance_count:
            self.instance_count, self.idle_since_seconds = kept, None
        elif self.idle_since_seconds is None:
            self.idle_since_seconds = now_seconds
        elif now_seconds - self.idle_since_seconds >= IDLE_RELEASE_SECONDS:
            self.instance_count, self.idle_since_seconds = kept, None

    def stop(self) -> None:
        for machine in self._machines:
            machine.release()


def next_machine(machines: Sequence[Machine]) -> Machine:
    """Returns a further instance, in the zone with the fewest; there are two."""
    zones = Counter(machine.zone for machine in machines)
    return Machine(min((0, 1), key=lambda zone: zones[zone]))
