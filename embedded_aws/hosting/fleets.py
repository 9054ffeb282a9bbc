"""Fleets, which are the running variants of one endpoint configuration, and their endpoint."""

import math
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from embedded_aws.api import without_none
from embedded_aws.hosting.async_requests import AsyncRequest, AsyncSettings
from embedded_aws.hosting.capacity import NO_CAPACITY
from embedded_aws.hosting.capture import CaptureConfig
from embedded_aws.hosting.declared import Declared
from embedded_aws.hosting.instance_groups import InstanceGroup
from embedded_aws.hosting.placement import Size
from embedded_aws.hosting.published import PublishedMetrics
from embedded_aws.hosting.variant_base import Variant
from embedded_aws.hosting.variants import RunningVariant, VariantStartError


class Fleet:
    """The variants of one endpoint configuration.

    Args:
        config: the endpoint configuration.
        variants: one for each of its production variants, not started.
        started: time of the request, in UTC.
        shadow: its shadow variant, not started; None without one.
    """

    def __init__(
        self,
        config: Declared,
        variants: Sequence[Variant],
        started: datetime,
        shadow: RunningVariant | None = None,
    ) -> None:
        self.config = config
        self.config_name = config.name
        declared = config.parameters.get("AsyncInferenceConfig")
        self.async_config: Mapping[str, Any] | None = declared
        self.async_settings = AsyncSettings.of(declared) if declared is not None else None
        self.capture = CaptureConfig.of(config.parameters)
        self.metrics = PublishedMetrics.of(config.parameters)
        self.variants = {variant.name: variant for variant in variants}
        self.shadow = shadow
        self.started = started

    @property
    def every_variant(self) -> dict[str, Variant]:
        """Returns the production variants and the shadow variant, by name."""
        shadows: dict[str, Variant]
        shadows = {} if self.shadow is None else {self.shadow.name: self.shadow}
        return {**self.variants, **shadows}

    @property
    def groups(self) -> dict[str, InstanceGroup]:
        """Returns the variants that host inference components, by name."""
        found = self.variants.items()
        return {name: each for name, each in found if isinstance(each, InstanceGroup)}

    @property
    def containers(self) -> list[RunningVariant]:
        """Returns the variants that have a container of their own."""
        return [each for each in self.every_variant.values() if isinstance(each, RunningVariant)]

    @property
    def instance_count(self) -> int:
        """Returns the instances of all production variants."""
        return sum(variant.instance_count for variant in self.variants.values())

    @property
    def smallest_count(self) -> int:
        """Returns the instances of the smallest variant, which limits the size of a step."""
        return min(variant.instance_count for variant in self.variants.values())

    def instances(self, part: float = 1.0) -> Counter[str]:
        """Returns the number of instances by type; of a part of the fleet, rounded up."""
        found: Counter[str] = Counter()
        for variant in self.every_variant.values():
            found[variant.instance_type] += math.ceil(part * variant.instance_count)
        return found

    def declared(self) -> dict[str, Mapping[str, Any]]:
        """Returns every variant as its configuration declares it, by name."""
        return {name: variant.declared for name, variant in self.variants.items()}

    def start(self) -> None:
        """Starts all variants at the same time; after an error none is left running.

        Raises:
            VariantStartError: the first failure, in the configuration's order.
        """
        every = self.every_variant.values()
        if not all(variant.has_capacity for variant in every if variant.instance_count):
            raise VariantStartError(NO_CAPACITY)
        with ThreadPoolExecutor(len(every), "variant-start") as pool:
            # A variant may keep the number of instances of its predecessor, which may be none.
            starts = [pool.submit(variant.start) for variant in every if variant.instance_count]
        for start in starts:
            if (error := start.exception()) is not None:
                self.stop()
                if isinstance(error, VariantStartError):
                    raise error
                raise VariantStartError(
                    "Request to service failed. If failure persists after retry, contact "
                    f"customer support. ({type(error).__name__}: {error})"
                ) from error

    def request_stop(self) -> None:
        """Begins to stop every variant; a start in progress fails."""
        for variant in self.every_variant.values():
            variant.request_stop()

    def stop(self) -> None:
        """Stops every variant, all at the same time, and waits."""
        self.request_stop()
        for variant in self.every_variant.values():
            variant.stop()

    def drain(self, timeout_seconds: float) -> None:
        """Waits until no request is in flight."""
        for variant in self.every_variant.values():
            variant.drain(timeout_seconds)

    def retain(self, previous: "Fleet", excluded: set[str]) -> None:
        """Takes over the capture, and the live counts and weights of variants with the same name.

        Args:
            previous: the fleet in service.
            excluded: VariantPropertyTypes that the new configuration sets nevertheless.
        """
        if "DataCaptureConfig" not in excluded:
            self.capture = previous.capture
        for name, variant in self.every_variant.items():
            live = previous.every_variant.get(name)
            if live is None:
                continue
            if "DesiredInstanceCount" not in excluded:
                variant.instance_count = live.instance_count
            if "DesiredWeight" not in excluded:
                variant.weight = live.weight

    def describe(self) -> list[dict[str, Any]]:
        """Returns the ProductionVariants of DescribeEndpoint."""
        return [self._describe(variant) for variant in self.variants.values()]

    def describe_shadow(self) -> list[dict[str, Any]] | None:
        """Returns the ShadowProductionVariants of DescribeEndpoint; None without one."""
        return None if self.shadow is None else [self._describe(self.shadow)]

    def enter_shadow(self) -> RunningVariant | None:
        """Returns the shadow variant if it gets a copy of the present request, else None.

        The copy is counted in; the caller must call `leave`. The share of the copies is the
        shadow's weight, relative to the production variant's weight: AWS's example copies all
        requests with 1 and 1 (model-shadow-deployment.html).
        """
        if self.shadow is None:
            return None
        (production,) = self.variants.values()
        share = self.shadow.weight / production.weight if production.weight else 0.0
        # S311: used for sampling, not for cryptography.
        if random.random() >= share:  # noqa: S311
            return None
        self.shadow.enter()
        return self.shadow

    def _describe(self, variant: Variant) -> dict[str, Any]:
        pools = variant.declared.get("InstancePools")
        counts = {variant.instance_type: variant.instance_count}
        return without_none(
            {
                "VariantName": variant.name,
                "DeployedImages": [
                    {
                        "SpecifiedImage": image,
                        "ResolvedImage": image,
                        "ResolutionTime": self.started,
                    }
                    for image in variant.images
                ]
                or None,
                "CurrentWeight": variant.weight,
                "DesiredWeight": variant.weight,
                "CurrentInstanceCount": variant.instance_count,
                "DesiredInstanceCount": variant.instance_count,
                "RoutingConfig": variant.declared.get("RoutingConfig"),
                "ManagedInstanceScaling": variant.declared.get("ManagedInstanceScaling"),
                "CapacityReservationConfig": variant.declared.get("CapacityReservationConfig"),
                "InstancePools": pools
                and [
                    {
                        "InstanceType": pool["InstanceType"],
                        "CurrentInstanceCount": counts.get(pool["InstanceType"], 0),
                    }
                    for pool in pools
                ],
            }
        )


class Entered(NamedTuple):
    """What serves one request.

    Attributes:
        variant: answers the request.
        shadow: gets a copy of the request; None if it does not.
        capture: says what of the request is written to S3; None for nothing.
        metrics: which metrics of the request are published.
    """

    variant: RunningVariant
    shadow: RunningVariant | None
    capture: CaptureConfig | None
    metrics: PublishedMetrics


class Queue(Protocol):
    """The queue of an asynchronous endpoint."""

    def put(self, request: AsyncRequest) -> None:
        """Adds a request at the end."""

    def sample(self) -> None:
        """Records the metrics of the backlog."""

    def close(self) -> None:
        """Drops every request."""


class Hosted(Protocol):
    """An inference component, as its endpoint knows it."""

    variant_name: str

    def copy_sizes(self) -> list[Size]:
        """Returns the resources of each copy that takes its part of an instance."""


@dataclass
class Endpoint:
    """An endpoint; every field is read and written under `lock`.

    Attributes:
        region: the endpoint's region.
        name: EndpointName.
        arn: EndpointArn.
        config_name: the configuration it runs, or tried to run.
        created: in UTC.
        modified: last change, in UTC.
        status: EndpointStatus.
        failure_reason: reason of the last creation or update that failed.
        live: the fleet in service.
        pending: the fleet that is being started.
        pending_share: the pending fleet's share of the requests, in [0, 1].
        retiring: fleets out of service that are not stopped yet.
        deployment_config: DeploymentConfig of the last update.
        queue: requests of an asynchronous endpoint; None for another.
        components: the inference components that it hosts, by name.
    """

    region: str
    name: str
    arn: str
    config_name: str
    created: datetime
    modified: datetime
    status: str = "Creating"
    failure_reason: str | None = None
    live: Fleet | None = None
    pending: Fleet | None = None
    pending_share: float = 0.0
    retiring: list[Fleet] = field(default_factory=list)
    deployment_config: Mapping[str, Any] | None = None
    queue: Queue | None = None
    components: dict[str, Hosted] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def async_settings(self) -> AsyncSettings | None:
        """Returns the settings of the live fleet; None if it is not asynchronous."""
        with self.lock:
            return self.live.async_settings if self.live is not None else None

    @property
    def hosts_components(self) -> bool:
        """Returns whether its requests must name an inference component."""
        with self.lock:
            return self.live is not None and bool(self.live.groups)

    def enter(self, variant_name: str | None) -> Entered | None:
        """Chooses the variant of one request and counts the request in.

        Args:
            variant_name: TargetVariant, or None to choose by weight.

        Returns:
            The variant and the shadow variant, whose `leave` the caller must call, and their
            fleet's capture; None if nothing serves.
        """
        with self.lock:
            fleet = self.live
            if self.pending is not None and random.random() < self.pending_share:  # noqa: S311
                fleet = self.pending
            if fleet is None or self.status == "Deleting":
                return None
            if variant_name is not None:
                chosen = fleet.variants.get(variant_name)
            else:
                variants = list(fleet.variants.values())
                weights = [variant.weight for variant in variants]
                # S311: used for routing, not for cryptography.
                chosen = (
                    random.choices(variants, weights)[0]  # noqa: S311
                    if sum(weights) > 0
                    else None
                )
            if not isinstance(chosen, RunningVariant):
                return None
            chosen.enter()
            return Entered(chosen, fleet.enter_shadow(), fleet.capture, fleet.metrics)

    def fleets(self) -> list[Fleet]:
        """Returns every fleet that may have a process."""
        with self.lock:
            fleets = [self.live, self.pending, *self.retiring]
            return [fleet for fleet in fleets if fleet is not None]

    def describe(self, *, captures: bool) -> dict[str, Any]:
        """Returns DescribeEndpoint's answer.

        Args:
            captures: whether the last captured records could be written.
        """
        with self.lock:
            capture = self.live.capture if self.live else None
            return without_none(
                {
                    "EndpointName": self.name,
                    "EndpointArn": self.arn,
                    "EndpointConfigName": self.config_name,
                    "EndpointStatus": self.status,
                    "CreationTime": self.created,
                    "LastModifiedTime": self.modified,
                    "ProductionVariants": self.live.describe() if self.live else None,
                    "ShadowProductionVariants": self.live.describe_shadow() if self.live else None,
                    "DataCaptureConfig": capture and capture.describe(works=captures),
                    "FailureReason": self.failure_reason,
                    "AsyncInferenceConfig": self.live.async_config if self.live else None,
                    "MetricsConfig": (
                        self.live.config.parameters.get("MetricsConfig") if self.live else None
                    ),
                    "LastDeploymentConfig": self.deployment_config,
                    "PendingDeploymentSummary": self._pending_summary(),
                }
            )

    def _pending_summary(self) -> dict[str, Any] | None:
        if self.pending is None or self.live is None:
            return None
        return without_none(
            {
                "EndpointConfigName": self.pending.config_name,
                "ProductionVariants": self.pending.describe(),
                "ShadowProductionVariants": self.pending.describe_shadow(),
                "StartTime": self.pending.started,
            }
        )
