"""A live endpoint, and how its scalable targets follow a deployment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..answers import Client, RefusedError, Wait
from .alarms import point_alarms
from .packing import pack, unpack
from .stack import Stack
from .targets import Targets

_IN_PROGRESS = ("Creating", "Updating", "SystemUpdating", "RollingBack", "Deleting")
# Less than the 15 minutes that Lambda gives a function.
_ENDPOINT_POLLS, _ENDPOINT_POLL_SECONDS = 80, 10.0


class Endpoint:
    """A live endpoint and the scalable targets that its stack created."""

    def __init__(self, name: str, stack_id: str, client: Client, wait: Wait) -> None:
        self._name = name
        self._sagemaker = client("sagemaker")
        self._targets = Targets(name, client, wait)
        self._stack = Stack(stack_id, client)
        self._client = client
        self._wait = wait
        self._polls_left = _ENDPOINT_POLLS

    def settle(
        self, variants: list[dict[str, Any]], tags: Mapping[str, str], *, is_first: bool
    ) -> list[str]:
        """Brings the targets into the state that the next step of the deployment needs.

        Args:
            variants: the template's variants: Name, InstanceTypes and, if it is scaled, Scaling.
            tags: tags of every target.
            is_first: whether the stack has had no such function before.

        Returns:
            The finished changes, one sentence part each.

        Raises:
            RefusedError: the endpoint is busy, or the stack's targets are older than this function.
        """
        made = self._stack.resources()
        owned = made.targets(self._name)
        if not owned:
            return []
        live = self._live_types()
        if live is None:
            return []
        wanted = {item["Name"]: item for item in variants}
        registered = self._targets.registered({*owned, *wanted})
        stale = [
            name
            for name in sorted(owned & registered)
            if live.get(name) != _types(wanted.get(name)) or "Scaling" not in wanted.get(name, {})
        ]
        done: list[str] = []
        if stale and is_first:
            # Nothing would register them again: if this resource's creation is undone, the function
            # does not learn which targets there were.
            changed = [name for name in stale if live.get(name) != _types(wanted.get(name))]
            if changed:
                raise RefusedError(
                    f"The autoscaling of {', '.join(changed)} was deployed by an older Slipway, "
                    "which cannot be undone together with a change of instances or variants. "
                    "Deploy once without that change, then deploy the change."
                )
            stale = []
        for name in stale:
            self._targets.deregister(name)
            done.append(f"deregistered {name}")
        if stale:
            self._targets.await_gone(stale)
            # A scaling activity may have begun before.
            self._described()
        for name in sorted(owned & set(wanted)):
            scaling = wanted[name].get("Scaling")
            if scaling is not None and live.get(name) == _types(wanted[name]):
                if name not in registered - set(stale):
                    self._targets.register(
                        name,
                        MinCapacity=int(scaling["MinCapacity"]),
                        MaxCapacity=int(scaling["MaxCapacity"]),
                        **({"Tags": dict(tags)} if tags else {}),
                    )
                    self._targets.put_schedules(name, scaling.get("Schedules", []))
                    done.append(f"registered {name}")
                missing = made.policies(self._name, name) - self._targets.policy_names(name)
                for policy in json.loads(scaling["Policies"]):
                    # A policy that the stack has not created yet is left to CloudFormation.
                    if policy["PolicyName"] in missing:
                        self._targets.put_policy(name, policy)
                        done.append(f"put the policy {policy['PolicyName']} of {name}")
        return done

    def point_alarms(self) -> list[str]:
        """Has the stack's alarms carry out the live step policies.

        Returns:
            The finished changes, one sentence part each.
        """
        made = self._stack.resources()
        owned = made.targets(self._name)
        live = {
            policy["PolicyARN"]
            for name in self._targets.registered(owned)
            for policy in self._targets.policies(name)
            if policy["PolicyType"] == "StepScaling"
        }
        return point_alarms(self._client("cloudwatch"), made.alarms(), live)

    def remembered(self, longest: int) -> str:
        """Returns the stack's registered targets as text, for `restore`; empty without any."""
        made = self._stack.resources()
        owned = made.targets(self._name)
        if not owned:
            return ""
        kept = {}
        for name, target in self._targets.described(owned).items():
            owned_policies = made.policies(self._name, name)
            kept[name] = {
                "MinCapacity": target["MinCapacity"],
                "MaxCapacity": target["MaxCapacity"],
                "SuspendedState": target.get("SuspendedState"),
                "Policies": [
                    policy
                    for policy in self._targets.definitions(name)
                    if policy["PolicyName"] in owned_policies
                ],
                "Schedules": self._targets.schedules(name),
            }
        packed = pack(kept)
        if len(packed) > longest:
            raise RefusedError(
                f"The scaling policies and schedules of {self._name} are too long to be "
                "remembered while the endpoint is updated."
            )
        return packed

    def restore(self, remembered: str) -> list[str]:
        """Registers the targets that a deployment deregistered before it was rolled back.

        Args:
            remembered: the text that `remembered` returned before the deployment.

        Returns:
            The finished changes, one sentence part each.
        """
        if not remembered or not self._stack.status().startswith("UPDATE_ROLLBACK"):
            return []
        kept = unpack(remembered)
        live = self._live_types()
        missing = set(kept) & self._stack.resources().targets(self._name) & set(live or ())
        done = []
        for name in sorted(missing - self._targets.registered(missing)):
            was = kept[name]
            suspended = {"SuspendedState": was["SuspendedState"]} if was["SuspendedState"] else {}
            self._targets.register(
                name, MinCapacity=was["MinCapacity"], MaxCapacity=was["MaxCapacity"], **suspended
            )
            for policy in was["Policies"]:
                self._targets.put_policy(name, policy)
            self._targets.put_schedules(name, was["Schedules"])
            done.append(f"registered {name} as it was")
        return done + self.point_alarms()

    def _live_types(self) -> dict[str, list[str]] | None:
        """Returns the instance types of every live variant; None if there is no endpoint."""
        described = self._described()
        if described is None:
            return None
        config = self._sagemaker.describe_endpoint_config(
            EndpointConfigName=described["EndpointConfigName"]
        )
        return {item["VariantName"]: _declared_types(item) for item in config["ProductionVariants"]}

    def _described(self) -> dict[str, Any] | None:
        """Describes the endpoint once no change is in progress; returns None if there is none."""
        while True:
            try:
                described: dict[str, Any] = self._sagemaker.describe_endpoint(
                    EndpointName=self._name
                )
            except Exception as error:
                # SageMaker has no error code for something that does not exist.
                if "Could not find endpoint" in str(error):
                    return None
                raise
            if described["EndpointStatus"] not in _IN_PROGRESS:
                return described
            if self._polls_left == 0:
                raise RefusedError(
                    f"The endpoint {self._name} is still {described['EndpointStatus']}. Wait until "
                    "it is InService, then deploy again (or continue the rollback of the stack)."
                )
            self._polls_left -= 1
            self._wait(_ENDPOINT_POLL_SECONDS)


def _types(variant: Mapping[str, Any] | None) -> list[str] | None:
    return None if variant is None else list(variant["InstanceTypes"])


def _declared_types(variant: Mapping[str, Any]) -> list[str]:
    """Returns the instance types of a production variant, the preferred type first."""
    if "InstanceType" in variant:
        return [variant["InstanceType"]]
    pools = sorted(variant["InstancePools"], key=lambda pool: int(pool["Priority"]))
    return [pool["InstanceType"] for pool in pools]
