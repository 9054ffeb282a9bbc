"""An inference component and its copies, and an adapter, which its base's copies load."""

import hashlib
import random
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slipway.embedded_aws.api import ValidationError
from slipway.embedded_aws.hosting.fleets.endpoint import AdapterFiles, Endpoint
from slipway.embedded_aws.hosting.fleets.instance_group import InstanceGroup
from slipway.embedded_aws.hosting.fleets.placement import Copy, Size, size_of_copy
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
        model: the request of CreateModel that its copies run.
        progress: the change in progress; None without one.
        is_failed: whether its creation failed.
        pending: copies of an update in progress, which get `pending_share` of the requests.
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

    def placed(self) -> list[Copy]:
        copies = [*self.copies, *self.pending, *self.starting]
        return [Copy(self.name, self.copy_size, copy.machine) for copy in copies]

    def require_settled(self, verb: str) -> None:
        """Raises if a change is in progress, in AWS's words; `verb` is the request."""
        if self.progress is not None:
            raise ValidationError(
                f'Cannot {verb} inference component "{self.arn}" while it is in state '
                f"{self.progress}."
            )

    def enter(self, body: bytes = b"", prefix_id: str = "") -> RunningVariant | None:
        """Chooses the copy of one request and counts the request in; returns None if no copy runs.

        The caller must call the copy's `leave`. A routing by prefix reads the beginning of `body`,
        or `prefix_id`: PrefixAwareId of the request.
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
            if group is not None and group.prefixes is not None:
                chosen = by_prefix(candidates, group.prefixes, body, prefix_id) or chosen
            chosen.enter()
            return chosen

    def describe(self) -> dict[str, Any]:
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


@dataclass(kw_only=True)
class Adapter(Component):
    """LoRA weights that the copies of another component, `base`, load; `files` are in use.

    It has no copies and reserves nothing. A copy of the base gets the adapter when the adapter is
    created, or else before the first request that names the adapter. Sources, read 2026-11-29:

    - https://docs.aws.amazon.com/sagemaker/latest/dg/realtime-endpoints-adapt.html
    - The server's adapter API and its header X-Amzn-SageMaker-Adapter-Identifier:
      https://github.com/deepjavalibrary/djl-serving, serving/docs/adapters.md and adapters_api.md

    AWS documents neither which metrics a request to an adapter has, nor what an update does
    meanwhile. Here the metrics of the request name the adapter, and an update loads the new files
    before it unloads the old ones.
    """

    base: Component
    files: AdapterFiles = field(init=False)
    versions: int = 0

    def __post_init__(self) -> None:
        self.files = self.next_files(self.specification["Container"]["ArtifactUrl"])

    def next_files(self, url: str) -> AdapterFiles:
        self.versions += 1
        suffix = f"-{self.versions}" if self.versions > 1 else ""
        return AdapterFiles(f"{self.name}{suffix}", url)

    def enter_files(self) -> AdapterFiles | None:
        """Counts a request in; returns None if the adapter is being deleted, or has failed."""
        with self.lock:
            if self.progress == DELETING or self.is_failed:
                return None
            self.files.enter()
            return self.files

    def describe(self) -> dict[str, Any]:
        described = super().describe()
        described.pop("RuntimeConfig")
        return {**described, "Specification": self.specification}


def copies_on(components: Iterable[Component], endpoint: Endpoint, variant_name: str) -> list[Copy]:
    return [
        copy
        for component in components
        if component.endpoint is endpoint and component.variant_name == variant_name
        for copy in component.placed()
    ]


def by_prefix(
    copies: Sequence[RunningVariant], routing: Mapping[str, int], body: bytes, prefix_id: str
) -> RunningVariant | None:
    """Returns the copy for a prefix: of one instance, until its copies reach the threshold.

    Each prefix has an order of its own of the instances, and of the copies on each. AWS documents
    no hash. It does not document either what happens with every copy at the threshold: here the
    first one answers. With fewer than two instances AWS does not route by prefix, and None is
    returned.
    """
    key = prefix_id.encode() + b"\0" + body[: routing["PrefixLength"]]

    def order(copy: RunningVariant) -> tuple[bytes, bytes]:
        names = (copy.source.instance_id, copy.source.container_id or "")
        one, two = (hashlib.sha256(key + name.encode()).digest() for name in names)
        return one, two

    if len({copy.source.instance_id for copy in copies}) < 2:
        return None
    ordered = sorted(copies, key=order)
    most = routing["ConcurrencyThreshold"]
    return next((copy for copy in ordered if copy.in_flight < most), ordered[0])
