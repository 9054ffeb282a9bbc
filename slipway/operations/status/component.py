"""The inference component of an endpoint that scales to zero, read back from the account."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slipway.access import Access
from slipway.deployed.calls import component_names, scaling_items
from slipway.deployed.described import Raw


@dataclass(frozen=True)
class Component:
    """A live inference component; the bounds are None if its copies are not scaled.

    `changed` is when the status last changed, in UTC. `failure_reason` is of the last change that
    failed. `current_copies` answer.
    """

    name: str
    status: str
    changed: datetime
    failure_reason: str | None
    current_copies: int
    desired_copies: int
    min_copies: int | None
    max_copies: int | None

    @property
    def is_asleep(self) -> bool:
        """Returns whether the next request finds no copy."""
        return self.current_copies == 0 and self.status == "InService"


def other_components(sagemaker: Any, described: Raw) -> tuple[str, ...]:
    """Returns the names of the other components on a component's endpoint, in order."""
    names = component_names(sagemaker, described["EndpointName"])
    return tuple(sorted(name for name in names if name != described["InferenceComponentName"]))


def read_component(access: Access, described: Raw) -> Component:
    """Returns a component with its bounds."""
    copies = described.get("RuntimeConfig", {})
    name = described["InferenceComponentName"]
    target = target_of(access, name)
    return Component(
        name=name,
        status=described["InferenceComponentStatus"],
        changed=described["LastModifiedTime"],
        failure_reason=described.get("FailureReason"),
        current_copies=copies.get("CurrentCopyCount", 0),
        desired_copies=copies.get("DesiredCopyCount", 0),
        min_copies=target["MinCapacity"] if target else None,
        max_copies=target["MaxCapacity"] if target else None,
    )


def target_of(access: Access, name: str) -> Raw | None:
    """Returns the scalable target of a component's copies; None if they are not scaled."""
    targets = scaling_items(
        access.client("application-autoscaling"),
        "describe_scalable_targets",
        ResourceIds=[f"inference-component/{name}"],
    )
    return targets[0] if targets else None
