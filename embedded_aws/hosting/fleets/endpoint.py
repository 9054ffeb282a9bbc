"""An endpoint: its fleets in service and in an update, and the choice of a request's variant."""

import random
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from slipway.embedded_aws.hosting.fleets.fleet import Fleet
from slipway.embedded_aws.hosting.fleets.running_variant import RunningVariant
from slipway.embedded_aws.hosting.resources.async_settings import AsyncSettings
from slipway.embedded_aws.hosting.telemetry.capture import CaptureConfig
from slipway.embedded_aws.hosting.telemetry.metrics import PublishedMetrics

# Longer than any request may take.
_ADAPTER_DRAIN_SECONDS = 65.0


class AdapterFiles:
    """One version of an adapter's files in the copies of its base, and the requests that use it.

    `identifier` is the adapter's name in requests to the server, and `url` is of the archive.
    """

    def __init__(self, identifier: str, url: str) -> None:
        self.identifier, self.url = identifier, url
        self._in_flight = 0
        self._idle = threading.Condition()

    def enter(self) -> None:
        with self._idle:
            self._in_flight += 1

    def leave(self) -> None:
        with self._idle:
            self._in_flight -= 1
            self._idle.notify_all()

    def unload(self, copies: list[RunningVariant]) -> None:
        """Removes the files from the copies, after the last answer of a request that uses them."""
        with self._idle:
            self._idle.wait_for(lambda: self._in_flight == 0, _ADAPTER_DRAIN_SECONDS)
        for copy in copies:
            copy.unload_adapter(self.identifier)


class Entered(NamedTuple):
    """What serves one request: `leave` must be called of the variant, the shadow and the adapter.

    Attributes:
        instance_count: the variant's instances, or the component's copies.
        component_name: the inference component of which the variant is a copy; None without one.
        shadow: gets a copy of the request; None if it gets none.
        capture: says what of the request is written to S3; None for nothing.
    """

    variant: RunningVariant
    instance_count: int
    metrics: PublishedMetrics
    component_name: str | None = None
    shadow: RunningVariant | None = None
    capture: CaptureConfig | None = None
    adapter: AdapterFiles | None = None


@dataclass
class Endpoint:
    """An endpoint; every field is read and written under `lock`.

    Attributes:
        config_name: the configuration it runs, or tried to run.
        is_asynchronous: whether its requests wait in a queue; no update changes this.
        pending: the fleet that is being started, which gets `pending_share` of the requests.
        retiring: fleets out of service that are not stopped yet.
    """

    region: str
    name: str
    arn: str
    config_name: str
    created: datetime
    modified: datetime
    is_asynchronous: bool = False
    status: str = "Creating"
    failure_reason: str | None = None
    live: Fleet | None = None
    pending: Fleet | None = None
    pending_share: float = 0.0
    retiring: list[Fleet] = field(default_factory=list)
    deployment_config: Mapping[str, Any] | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def async_settings(self) -> AsyncSettings | None:
        with self.lock:
            return self.live.async_settings if self.live is not None else None

    @property
    def serving(self) -> Fleet | None:
        """Returns the live fleet; None if the endpoint answers no request."""
        with self.lock:
            return None if self.status == "Deleting" else self.live

    def enter(self, variant_name: str | None) -> Entered | None:
        """Counts a request in at its TargetVariant, or one by weight; None if nothing serves."""
        with self.lock:
            fleet = self.serving
            # S311: used for routing, not for cryptography.
            if self.pending is not None and random.random() < self.pending_share:  # noqa: S311
                fleet = self.pending
            chosen = None if fleet is None else fleet.choose(variant_name)
            if fleet is None or chosen is None:
                return None
            chosen.enter()
            return Entered(
                chosen,
                chosen.instance_count,
                fleet.metrics,
                shadow=fleet.enter_shadow(),
                capture=fleet.capture,
            )

    def fleets(self) -> list[Fleet]:
        """Returns every fleet that may have a process."""
        with self.lock:
            fleets = [self.live, self.pending, *self.retiring]
            return [fleet for fleet in fleets if fleet is not None]

    def describe(self, *, captures: bool = True) -> dict[str, Any]:
        """`captures` says whether the last captured records could be written."""
        with self.lock:
            described = {
                "EndpointName": self.name,
                "EndpointArn": self.arn,
                "EndpointConfigName": self.config_name,
                "EndpointStatus": self.status,
                "CreationTime": self.created,
                "LastModifiedTime": self.modified,
                "FailureReason": self.failure_reason,
                "LastDeploymentConfig": self.deployment_config,
            }
            if (live := self.live) is None:
                return described
            described |= {
                **live.describe(),
                "DataCaptureConfig": live.capture and live.capture.describe(works=captures),
                "AsyncInferenceConfig": live.config.parameters.get("AsyncInferenceConfig"),
                "MetricsConfig": live.config.parameters.get("MetricsConfig"),
            }
            if self.pending is not None:
                described["PendingDeploymentSummary"] = {
                    "EndpointConfigName": self.pending.config.name,
                    "StartTime": self.pending.started,
                    **self.pending.describe(),
                }
            return described


def running_instances(endpoints: Iterable[Endpoint]) -> Counter[str]:
    """Returns the instances of all fleets, by type."""
    return sum((f.instances() for each in endpoints for f in each.fleets()), Counter())
