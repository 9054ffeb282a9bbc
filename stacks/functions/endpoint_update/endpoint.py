"""A live endpoint, and how its scalable targets follow a deployment."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from ..answers import Client, RefusedError, Wait
from .alarms import point_alarms
from .memory import pack, unpack
from .stack import Stack
from .targets import Targets

_IN_PROGRESS = ("Creating", "Updating", "SystemUpdating", "RollingBack", "Deleting")
# Less than the 15 minutes that Lambda gives a function.
_ENDPOINT_POLLS, _ENDPOINT_POLL_SECONDS = 80, 10.0


class Endpoint:
    """A live endpoint and the scalable targets that its stack created."""

    def __init__(self, name: str, stack: Stack, client: Client, wait: Wait) -> None:
        self._name = name
        self._sagemaker = client("sagemaker")
        self._targets = Targets(name, client, wait)
        self._stack = stack
        self._client = client
        self._wait = wait
        self._polls_left = _ENDPOINT_POLLS

    def make_way(self, config_name: str, scaled: Collection[str]) -> list[str]:
        """Makes the endpoint ready for its next configuration.

        Args:
            config_name: the next configuration.
            scaled: the variants that the template scales.

        Returns:
            The finished changes, one sentence part each.

        Raises:
            RefusedError: the endpoint is busy, or has another mode.
        """
        # SageMaker also refuses an update while instances are being added or removed.
        described = self._at_rest()
        if described is None or described["EndpointConfigName"] == config_name:
            return []
        live, wanted = self._config(described["EndpointConfigName"]), self._config(config_name)
        mode = "AsyncInferenceConfig"
        if (mode in live) != (mode in wanted) and not self._stack.is_rolled_back():
            raise RefusedError(
                f"SageMaker changes no endpoint from real-time to asynchronous, or back. Run "
                f"`cdk destroy` for {self._name} when nobody uses it, then deploy."
            )
        before, after = _types(live), _types(wanted)
        owned = self._stack.resources().targets(self._name)
        stale = [
            name
            for name in sorted(self._targets.described(owned))
            if name not in scaled or before.get(name) != after.get(name)
        ]
        for name in stale:
            self._targets.deregister(name)
        if stale:
            self._targets.await_gone(stale)
            # A scaling activity may have begun before.
            self._at_rest()
        return [f"deregistered {name}" for name in stale]

    def follow(
        self,
        config_name: str,
        scaled: Collection[str],
        weights: Mapping[str, Any],
        *,
        is_first: bool,
    ) -> list[str]:
        """Checks what the endpoint serves, sets the weights of its variants, and registers targets.

        The targets are those that `make_way` deregistered.

        CloudFormation then changes the targets as the template does, and makes their new policies.

        Args:
            config_name: the configuration that the endpoint should serve.
            scaled: the variants that the template scales.
            weights: of the variants, as the template has them; none of a single variant.
            is_first: whether the stack has had no such call before.

        Returns:
            The finished changes, one sentence part each.

        Raises:
            RefusedError: the endpoint is busy, or serves another configuration.
        """
        described = self._at_rest()
        if described is None:
            return []
        is_rolled_back = self._stack.is_rolled_back()
        if described["EndpointConfigName"] != config_name and not is_rolled_back:
            raise RefusedError(
                f"SageMaker undid the update without a failure: {self._name} still serves "
                f"{described['EndpointConfigName']}, not {config_name}. Mend what the endpoint's "
                "log group and the alarms of its rollout show, then deploy again."
            )
        done = self._share(described, weights)
        memory = self._stack.new_memory(self._name, is_first=is_first)
        return done + self._register(unpack(memory), described, scaled, own_policies=is_rolled_back)

    def _share(self, described: Mapping[str, Any], weights: Mapping[str, Any]) -> list[str]:
        """Sets the weights that differ, which needs no new fleet."""
        changed = {}
        for variant in described["ProductionVariants"] if weights else ():
            name = variant["VariantName"]
            wanted = float(weights.get(name, variant["DesiredWeight"]))
            # SageMaker keeps a weight in single precision.
            if not math.isclose(variant["DesiredWeight"], wanted, rel_tol=1e-6):
                changed[name] = wanted
        if changed:
            self._sagemaker.update_endpoint_weights_and_capacities(
                EndpointName=self._name,
                DesiredWeightsAndCapacities=[
                    {"VariantName": name, "DesiredWeight": weight}
                    for name, weight in changed.items()
                ],
            )
            self._at_rest()
        return [f"gave {name} the weight {weight:g}" for name, weight in changed.items()]

    def remembered(self, longest: int) -> str:
        """Returns the stack's registered targets as text, for `restore`; empty without any."""
        owned = self._stack.resources().targets(self._name)
        packed = pack(
            {
                name: {
                    "MinCapacity": target["MinCapacity"],
                    "MaxCapacity": target["MaxCapacity"],
                    "SuspendedState": target.get("SuspendedState"),
                    "Policies": self._targets.policies(name),
                    "Schedules": self._targets.schedules(name),
                }
                for name, target in self._targets.described(owned).items()
            }
        )
        if len(packed) > longest:
            raise RefusedError(
                f"The scaling policies and schedules of {self._name} are too long to be "
                "remembered while the endpoint is updated."
            )
        return packed

    def restore(self, memory: str) -> list[str]:
        """Registers the targets that a deployment deregistered before it was rolled back.

        Args:
            memory: the text that `remembered` returned before the deployment.

        Returns:
            The finished changes, one sentence part each.
        """
        described = self._at_rest() if memory and self._stack.is_rolled_back() else None
        if described is None:
            return []
        kept = unpack(memory)
        done = self._register(kept, described, kept, own_policies=True)
        made = self._stack.resources()
        live = {
            policy["PolicyARN"]
            for name in self._targets.described(made.targets(self._name))
            for policy in self._targets.described_policies(name)
            if policy["PolicyType"] == "StepScaling"
        }
        return done + point_alarms(self._client("cloudwatch"), made.alarms(), live)

    def _register(
        self,
        kept: Mapping[str, Any],
        described: Mapping[str, Any],
        names: Collection[str],
        *,
        own_policies: bool,
    ) -> list[str]:
        """Registers targets as they were, as far as they or their parts are missing.

        Args:
            kept: the targets, as `remembered` keeps them.
            described: the endpoint.
            names: the variants that may be registered.
            own_policies: whether policies of the stack are put too. CloudFormation makes them anew
                in a deployment, and takes them for unchanged in a rollback.
        """
        made = self._stack.resources()
        served = _types(self._config(described["EndpointConfigName"]))
        found = set(kept) & set(names) & set(served) & made.targets(self._name)
        registered = self._targets.described(found)
        done = []
        for name in sorted(found):
            was, own = kept[name], made.policies(self._name, name)
            # Each part is looked for: an earlier call may have been killed in between.
            if name not in registered:
                tags, suspended = self._tags(described["EndpointArn"]), was["SuspendedState"]
                self._targets.register(
                    name,
                    MinCapacity=was["MinCapacity"],
                    MaxCapacity=was["MaxCapacity"],
                    **({"SuspendedState": suspended} if suspended else {}),
                    **({"Tags": tags} if tags else {}),
                )
                done.append(f"registered {name} as it was")
            there = {each["PolicyName"] for each in self._targets.policies(name)}
            for policy in was["Policies"]:
                policy_name = policy["PolicyName"]
                if policy_name not in there and (own_policies or policy_name not in own):
                    self._targets.put_policy(name, policy)
            there = {each["ScheduledActionName"] for each in self._targets.schedules(name)}
            self._targets.put_schedules(
                name,
                [each for each in was["Schedules"] if each["ScheduledActionName"] not in there],
            )
        return done

    def _tags(self, arn: str) -> dict[str, str]:
        """Returns the endpoint's tags. The template gives the same ones to its targets."""
        tags = self._sagemaker.list_tags(ResourceArn=arn)["Tags"]
        return {tag["Key"]: tag["Value"] for tag in tags if not tag["Key"].startswith("aws:")}

    def _config(self, name: str) -> Mapping[str, Any]:
        config: Mapping[str, Any] = self._sagemaker.describe_endpoint_config(
            EndpointConfigName=name
        )
        return config

    def _at_rest(self) -> dict[str, Any] | None:
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


def _types(config: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the instance types of every variant, the preferred type first."""
    found = {}
    for variant in config["ProductionVariants"]:
        pools = sorted(variant.get("InstancePools", []), key=lambda pool: int(pool["Priority"]))
        types = [pool["InstanceType"] for pool in pools]
        # A serverless variant has none.
        found[variant["VariantName"]] = types or [variant.get("InstanceType", "")]
    return found
