"""Fleets: the running variants of one endpoint configuration."""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from slipway.embedded_aws.hosting.fleets.instance_group import InstanceGroup
from slipway.embedded_aws.hosting.fleets.running_variant import RunningVariant
from slipway.embedded_aws.hosting.fleets.serverless import ServerlessVariant
from slipway.embedded_aws.hosting.fleets.variant import NO_CAPACITY, Variant, VariantStartError
from slipway.embedded_aws.hosting.resources.async_settings import AsyncSettings
from slipway.embedded_aws.hosting.resources.records import Declared
from slipway.embedded_aws.hosting.telemetry.capture import CaptureConfig
from slipway.embedded_aws.hosting.telemetry.metrics import PublishedMetrics


class Fleet:
    """The variants of one endpoint configuration, not started at first, and a shadow variant."""

    def __init__(
        self,
        config: Declared,
        variants: Sequence[Variant],
        started: datetime,
        shadow: RunningVariant | None = None,
    ) -> None:
        self.config = config
        declared = config.parameters.get("AsyncInferenceConfig")
        self.async_settings = AsyncSettings.of(declared) if declared is not None else None
        self.capture = CaptureConfig.of(config.parameters)
        self.metrics = PublishedMetrics.of(config.parameters)
        self.variants = {variant.name: variant for variant in variants}
        self.shadow = shadow
        self.started = started

    @property
    def every_variant(self) -> dict[str, Variant]:
        shadows: dict[str, Variant]
        shadows = {} if self.shadow is None else {self.shadow.name: self.shadow}
        return {**self.variants, **shadows}

    @property
    def role(self) -> str | None:
        return next(iter(self.variants.values())).role

    @property
    def groups(self) -> dict[str, InstanceGroup]:
        found = self.variants.items()
        return {name: each for name, each in found if isinstance(each, InstanceGroup)}

    @property
    def serverless(self) -> list[ServerlessVariant]:
        return [each for each in self.variants.values() if isinstance(each, ServerlessVariant)]

    @property
    def containers(self) -> list[RunningVariant]:
        """Returns the variants that have a container of their own, and serverless containers."""
        found = [each for each in self.every_variant.values() if isinstance(each, RunningVariant)]
        return [*found, *(copy for each in self.serverless for copy in each.copies)]

    @property
    def instance_count(self) -> int:
        return sum(variant.instance_count for variant in self.variants.values())

    @property
    def smallest_count(self) -> int:
        """Returns the instances of the smallest variant, which limits the size of a step."""
        return min(variant.instance_count for variant in self.variants.values())

    def instances(self, part: float = 1.0) -> Counter[str]:
        """Returns the number of instances by type; of a part of the fleet, rounded up."""
        found: Counter[str] = Counter()
        for variant in self.every_variant.values():
            if isinstance(variant, ServerlessVariant):
                continue
            found[variant.instance_type] += math.ceil(round(part * variant.instance_count, 6))
        return found

    def declared(self) -> dict[str, Mapping[str, Any]]:
        return {name: variant.declared for name, variant in self.variants.items()}

    def start(self) -> None:
        """Starts all variants or none; the `VariantStartError` has every failure, in order."""
        # A variant may keep the number of instances of its predecessor, which may be none.
        started = [each for each in self.every_variant.values() if each.instance_count]
        if not all(variant.has_capacity for variant in started):
            raise VariantStartError(NO_CAPACITY)
        try:
            start_together(started)
        except VariantStartError:
            self.stop()
            raise

    def request_stop(self) -> None:
        for variant in self.every_variant.values():
            variant.request_stop()

    def stop(self) -> None:
        self.request_stop()
        for variant in self.every_variant.values():
            variant.stop()

    def drain(self, timeout_seconds: float) -> None:
        for variant in self.every_variant.values():
            variant.drain(timeout_seconds)

    def retain(self, previous: "Fleet", excluded: set[str]) -> None:
        """`excluded` are VariantPropertyTypes that the new configuration sets nevertheless."""
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

    def choose(self, variant_name: str | None) -> RunningVariant | None:
        """Returns the named variant, or one by weight, or None; may raise `ThrottledError`."""
        if variant_name is not None:
            chosen = self.variants.get(variant_name)
        else:
            variants = list(self.variants.values())
            weights = [variant.weight for variant in variants]
            # S311: used for routing, not for cryptography.
            chosen = random.choices(variants, weights)[0] if sum(weights) > 0 else None  # noqa: S311
        if isinstance(chosen, ServerlessVariant):
            return chosen.take()
        return chosen if isinstance(chosen, RunningVariant) else None

    def describe(self) -> dict[str, Any]:
        shadows = None if self.shadow is None else [self._describe(self.shadow)]
        return {
            "ProductionVariants": [self._describe(variant) for variant in self.variants.values()],
            "ShadowProductionVariants": shadows,
        }

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
        declared = variant.declared
        sized = declared.get("ServerlessConfig")
        count = variant.instance_count if sized is None else None
        images = [
            {"SpecifiedImage": image, "ResolvedImage": image, "ResolutionTime": self.started}
            for image in variant.images
        ]
        pools = [
            {
                "InstanceType": pool["InstanceType"],
                "CurrentInstanceCount": (
                    variant.instance_count if pool["InstanceType"] == variant.instance_type else 0
                ),
            }
            for pool in declared.get("InstancePools", ())
        ]
        return {
            "VariantName": variant.name,
            "DeployedImages": images or None,
            "CurrentWeight": variant.weight,
            "DesiredWeight": variant.weight,
            "CurrentInstanceCount": count,
            "DesiredInstanceCount": count,
            "CurrentServerlessConfig": sized,
            "DesiredServerlessConfig": sized,
            "RoutingConfig": declared.get("RoutingConfig"),
            "ManagedInstanceScaling": declared.get("ManagedInstanceScaling"),
            "CapacityReservationConfig": declared.get("CapacityReservationConfig"),
            "InstancePools": pools or None,
        }


def start_together(variants: Sequence[Variant]) -> None:
    """The caller stops them after an error, which has every failure, in their order."""
    if not variants:
        return
    with ThreadPoolExecutor(len(variants), "variant-start") as pool:
        starts = [pool.submit(variant.start) for variant in variants]
    errors = [error for start in starts if (error := start.exception()) is not None]
    unknown = next((each for each in errors if not isinstance(each, VariantStartError)), None)
    if unknown is not None:
        raise VariantStartError(
            "Request to service failed. If failure persists after retry, contact "
            f"customer support. ({type(unknown).__name__}: {unknown})"
        ) from unknown
    if errors:
        raise VariantStartError(" ".join(dict.fromkeys(map(str, errors))))
