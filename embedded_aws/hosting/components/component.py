"""An inference component and its copies."""

import random
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slipway.embedded_aws.api import ValidationError
from slipway.embedded_aws.hosting.fleets.endpoint import Endpoint
from slipway.embedded_aws.hosting.fleets.instance_group import InstanceGroup
from slipway.embedded_aws.hosting.fleets.placement import Size, instances_for, size_of_copy
from slipway.embedded_aws.hosting.fleets.running_variant import RunningVariant
from slipway.embedded_aws.hosting.resources.models import primary_container
from slipway.embedded_aws.hosting.telemetry.metrics import NAMESPACE, MetricOwner

# The words that refusals have for a change in progress; users quote three of them:
# https://github.com/huggingface/skills, hf-cloud-sagemaker, and
# https://github.com/stdapi-ai/stdapi.ai (both read 2026-11-24). UPDATE_IN_PROGRESS is inferred.
CREATING, UPDATING = "CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"
SCALING, DELETING = "UPDATE_RC_IN_PROGRESS", "DELETE_IN_PROGRESS"
_STATUSES = {CREATING: "Creating", UPDATING: "Updating", SCALING: "Updating", DELETING: "Deleting"}


@dataclass
class Component:
    """One inference component; every field is read and written under `lock`.

    Attributes:
        variant_name: the variant whose instances have its copies.
        model: the request of CreateModel that its copies run.
        progress: the change in progress; None without one.
        is_failed: whether its creation failed.
        failure_reason: reason of the last creation or change that failed.
        pending: copies of an update that is in progress.
        pending_share: share of the requests that the pending copies get, in [0, 1].
        starting: copies that are being started.
        retiring: copies that get no more requests and are not stopped yet.
    """

    region: str
    name: str
    arn: str
    endpoint: Endpoint
    variant_name: str
    specification: Mapping[str, Any]
    model: Mapping[str, Any]
    desired_count: int
    created: datetime
    modified: datetime
    progress: str | None = CREATING
    is_failed: bool = False
    failure_reason: str | None = None
    copies: list[RunningVariant] = field(default_factory=list)
    pending: list[RunningVariant] = field(default_factory=list)
    pending_share: float = 0.0
    starting: list[RunningVariant] = field(default_factory=list)
    retiring: list[RunningVariant] = field(default_factory=list)
    deployment_config: Mapping[str, Any] | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def status(self) -> str:
        """Returns InferenceComponentStatus."""
        if self.progress is not None:
            return _STATUSES[self.progress]
        return "Failed" if self.is_failed else "InService"

    @property
    def group(self) -> InstanceGroup | None:
        """Returns the instances that its copies run on; None if its endpoint is gone."""
        with self.endpoint.lock:
            live = self.endpoint.live
            return None if live is None else live.groups.get(self.variant_name)

    @property
    def copy_size(self) -> Size:
        """Returns the resources of one copy."""
        return size_of_copy(self.specification["ComputeResourceRequirements"])

    @property
    def owner(self) -> MetricOwner:
        """Returns the namespace and the dimension of its metrics."""
        return MetricOwner(
            self.region,
            NAMESPACE,
            self.endpoint.name,
            self.variant_name,
            component_name=self.name,
        )

    def every_copy(self) -> list[RunningVariant]:
        """Returns every copy that may have a process."""
        with self.lock:
            return [*self.copies, *self.pending, *self.starting, *self.retiring]

    def copy_sizes(self) -> list[Size]:
        """Returns the resources of each copy that takes its part of an instance."""
        copies = len(self.copies) + len(self.pending) + len(self.starting)
        return [self.copy_size] * copies

    def require_settled(self, verb: str) -> None:
        """Raises if a change is in progress.

        Args:
            verb: the request, `update` or `delete`.

        Raises:
            ValidationError: the message has the change in AWS's words.
        """
        if self.progress is not None:
            raise ValidationError(
                f'Cannot {verb} inference component "{self.arn}" while it is in state '
                f"{self.progress}."
            )

    def enter(self) -> RunningVariant | None:
        """Chooses the copy of one request and counts the request in.

        Returns:
            The copy, whose `leave` the caller must call; None if no copy runs.
        """
        group = self.group
        with self.lock:
            # S311: used for routing, not for cryptography.
            is_pending = random.random() < self.pending_share  # noqa: S311
            # An update of a component without copies has pending copies alone.
            copies = self.pending if is_pending or not self.copies else self.copies
            candidates = [copy for copy in copies if copy.is_healthy] or copies
            if not candidates:
                return None
            if group is not None and group.is_least_outstanding:
                fewest = min(copy.in_flight for copy in candidates)
                candidates = [copy for copy in candidates if copy.in_flight == fewest]
            chosen = random.choice(candidates)  # noqa: S311
            chosen.enter()
            return chosen

    def describe(self) -> dict[str, Any]:
        """Returns DescribeInferenceComponent's answer; members without a value are left out."""
        image = primary_container(self.model)["Image"]
        declared = self.specification.get("Container", {})
        container = {
            "DeployedImage": {
                "SpecifiedImage": image,
                "ResolvedImage": image,
                "ResolutionTime": self.created,
            },
            "ArtifactUrl": declared.get("ArtifactUrl"),
            "Environment": declared.get("Environment"),
        }
        with self.lock:
            return {
                "InferenceComponentName": self.name,
                "InferenceComponentArn": self.arn,
                "EndpointName": self.endpoint.name,
                "EndpointArn": self.endpoint.arn,
                "VariantName": self.variant_name,
                "FailureReason": self.failure_reason,
                "Specification": {**self.specification, "Container": container},
                "RuntimeConfig": {
                    "DesiredCopyCount": self.desired_count,
                    "CurrentCopyCount": len(self.copies),
                },
                "CreationTime": self.created,
                "LastModifiedTime": self.modified,
                "InferenceComponentStatus": self.status,
                "LastDeploymentConfig": self.deployment_config,
            }


def sizes_on(components: Iterable[Component], endpoint: Endpoint, variant_name: str) -> list[Size]:
    """Returns the size of every copy on the instances of a variant."""
    return [
        size
        for component in components
        if component.endpoint is endpoint and component.variant_name == variant_name
        for size in component.copy_sizes()
    ]


def instances_needed(group: InstanceGroup, copies: Sequence[Size]) -> int:
    """Returns the instances that hold the copies; a copy that fits no instance counts as one."""
    needed = instances_for(group.instance_size, copies)
    return len(copies) if needed is None else needed
