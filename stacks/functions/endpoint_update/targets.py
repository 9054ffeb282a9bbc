"""The scalable targets of an endpoint's variants, in Application Auto Scaling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..answers import Client, RefusedError, Wait

DIMENSION = "sagemaker:variant:DesiredInstanceCount"
_NAMESPACE = "sagemaker"
# Members that put a policy again, of those that describe it.
_POLICY = (
    "PolicyName",
    "PolicyType",
    "StepScalingPolicyConfiguration",
    "TargetTrackingScalingPolicyConfiguration",
)
# Members of a scheduled action beside its bounds.
_SCHEDULE = ("ScheduledActionName", "Schedule", "Timezone")
_POLLS, _POLL_SECONDS = 10, 1.0
_ATTEMPTS, _ATTEMPT_PAUSE_SECONDS = 5, 3.0


def resource_id(endpoint: str, variant: str) -> str:
    """Returns the ResourceId of a variant."""
    return f"endpoint/{endpoint}/variant/{variant}"


class Targets:
    """The scalable targets of one endpoint, by the names of their variants."""

    def __init__(self, endpoint: str, client: Client, wait: Wait) -> None:
        self._endpoint = endpoint
        self._scaling = client("application-autoscaling")
        self._wait = wait

    def described(self, names: set[str]) -> dict[str, dict[str, Any]]:
        """Returns the descriptions of these variants, as far as they are registered."""
        if not names:
            return {}  # an empty list would mean every target of the account
        answer = self._scaling.describe_scalable_targets(
            ServiceNamespace=_NAMESPACE,
            ResourceIds=[resource_id(self._endpoint, name) for name in sorted(names)],
            ScalableDimension=DIMENSION,
        )
        found = {target["ResourceId"]: target for target in answer["ScalableTargets"]}
        ids = {name: resource_id(self._endpoint, name) for name in sorted(names)}
        return {name: found[target] for name, target in ids.items() if target in found}

    def register(self, name: str, **members: Any) -> None:
        """Registers a variant."""
        self._retrying(self._scaling.register_scalable_target, **self._target(name), **members)

    def deregister(self, name: str) -> None:
        """Deregisters a variant; one that is not registered counts as deregistered."""
        self._retrying(
            self._scaling.deregister_scalable_target,
            done_if="ObjectNotFoundException",
            **self._target(name),
        )

    def await_gone(self, names: list[str]) -> None:
        """Waits until no call returns the deregistered targets any more."""
        for _ in range(_POLLS):
            if not self.described(set(names)):
                return
            self._wait(_POLL_SECONDS)
        raise RefusedError(f"The scalable targets of {', '.join(names)} do not go. Deploy again.")

    def described_policies(self, name: str) -> list[dict[str, Any]]:
        """Returns the descriptions of a variant's policies."""
        found = self._items("describe_scaling_policies", "ScalingPolicies", name)
        return [item for item in found if item["ResourceId"] == self._target(name)["ResourceId"]]

    def policies(self, name: str) -> list[dict[str, Any]]:
        """Returns a variant's policies, in the form of `put_policy`."""
        return [
            {key: policy[key] for key in _POLICY if policy.get(key)}
            for policy in self.described_policies(name)
        ]

    def put_policy(self, name: str, policy: Mapping[str, Any]) -> None:
        """Puts a policy of a variant.

        Args:
            name: the variant.
            policy: members of PutScalingPolicy beside the target.
        """
        self._retrying(self._scaling.put_scaling_policy, **self._target(name), **policy)

    def put_schedules(self, name: str, schedules: list[dict[str, Any]]) -> None:
        """Puts the scheduled actions of a variant."""
        for schedule in schedules:
            bounds = schedule["ScalableTargetAction"]
            self._retrying(
                self._scaling.put_scheduled_action,
                **self._target(name),
                **{key: schedule[key] for key in _SCHEDULE if key in schedule},
                ScalableTargetAction={key: int(value) for key, value in bounds.items()},
            )

    def schedules(self, name: str) -> list[dict[str, Any]]:
        """Returns a variant's scheduled actions, in the form of `put_schedules`."""
        return [
            {key: item[key] for key in (*_SCHEDULE, "ScalableTargetAction") if key in item}
            for item in self._items("describe_scheduled_actions", "ScheduledActions", name)
        ]

    def _items(self, operation: str, key: str, name: str) -> list[dict[str, Any]]:
        """Returns the items of every page of an operation that describes a variant's target."""
        items: list[dict[str, Any]] = []
        token: dict[str, str] = {}
        while True:
            page = getattr(self._scaling, operation)(**self._target(name), **token)
            items += page[key]
            if "NextToken" not in page:
                return items
            token = {"NextToken": page["NextToken"]}

    def _target(self, name: str) -> dict[str, str]:
        return {
            "ServiceNamespace": _NAMESPACE,
            "ResourceId": resource_id(self._endpoint, name),
            "ScalableDimension": DIMENSION,
        }

    def _retrying(
        self, operation: Callable[..., Any], *, done_if: str = "", **request: Any
    ) -> None:
        """Calls an operation again while another update of the same target is in progress.

        Args:
            operation: an operation of the scaling client.
            done_if: the error code that means that nothing is left to do.
            **request: the operation's members.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                operation(**request)
            except Exception as error:
                code = getattr(error, "response", {}).get("Error", {}).get("Code")
                if code == done_if:
                    return
                if code != "ConcurrentUpdateException" or attempt == _ATTEMPTS:
                    raise
                self._wait(_ATTEMPT_PAUSE_SECONDS)
            else:
                return
