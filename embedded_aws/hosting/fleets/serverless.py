"""A serverless variant: containers that start with requests, and end when they are idle.

One container answers one request at a time. A request without an idle container starts one, up to
MaxConcurrency; a further request is refused. ProvisionedConcurrency containers stay started.

https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints.html (read 2026-11-29)
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from slipway.embedded_aws.hosting.fleets.running_variant import HostingContext, RunningVariant
from slipway.embedded_aws.hosting.fleets.variant import Variant

# AWS names no time.
_IDLE_SECONDS = 300.0
# Of a download and a start together:
# https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints-invoke.html
_START_SECONDS = 180


class ThrottledError(Exception):
    """As many requests as the variant takes are computed already."""


class ServerlessCopy(RunningVariant):
    """One container, which starts with its first request."""

    def __init__(self, variant: "ServerlessVariant", context: HostingContext, **given: Any) -> None:
        super().__init__(context, **given)
        self._variant, self._clock = variant, context.clock
        self.memory_bytes = variant.settings["MemorySizeInMB"] << 20
        self._used_seconds = context.clock()
        self._setup_seconds: float | None = None
        self.is_started = False

    def wake(self) -> None:
        """Starts the container before its first request; raises `VariantStartError`."""
        if self.is_started:
            return
        begun = time.perf_counter()
        try:
            self.start()
        except BaseException:
            self._variant.drop(self)
            self.stop()
            raise
        self.is_started, self._setup_seconds = True, time.perf_counter() - begun

    def leave(self) -> None:
        self._used_seconds = self._clock()
        super().leave()

    def is_idle(self) -> bool:
        return self.in_flight == 0 and self._clock() - self._used_seconds >= _IDLE_SECONDS

    def own_metrics(self) -> dict[str, float]:
        setup, self._setup_seconds = self._setup_seconds, None
        found = {"ServerlessConcurrentExecutionsUtilization": self._variant.utilization}
        return found if setup is None else {**found, "ModelSetupTime": setup * 1e6}


class ServerlessVariant(Variant):
    """The containers of a serverless variant; `make` returns one that is not started."""

    def __init__(
        self,
        declared: Mapping[str, Any],
        config_name: str,
        make: Callable[["ServerlessVariant", Mapping[str, Any]], ServerlessCopy],
    ) -> None:
        super().__init__(declared, config_name, ())
        self.settings: Mapping[str, int] = declared["ServerlessConfig"]
        limits = {"ContainerStartupHealthCheckTimeoutInSeconds": _START_SECONDS}
        self._make = make
        self._declared = {**declared, **limits}
        first = self._new()
        self.role, self.images = first.role, first.images
        self.copies: list[ServerlessCopy] = []

    def _new(self) -> ServerlessCopy:
        return self._make(self, self._declared)

    @property
    def utilization(self) -> float:
        busy = sum(copy.in_flight > 0 for copy in self.copies)
        return busy / self.settings["MaxConcurrency"]

    def start(self) -> None:
        for _ in range(self.settings.get("ProvisionedConcurrency", 0)):
            self.copies.append(self._new())
            self.copies[-1].wake()

    def take(self) -> ServerlessCopy:
        """Returns a container for one request, which the caller must count in at once.

        The endpoint's lock is held, so that no two requests get one container. Raises
        `ThrottledError` if there is none, and no further one may start.
        """
        idle = [copy for copy in self.copies if copy.in_flight == 0]
        if idle:
            return idle[0]
        if len(self.copies) >= self.settings["MaxConcurrency"]:
            raise ThrottledError
        self.copies.append(self._new())
        return self.copies[-1]

    def take_idle(self) -> list[ServerlessCopy]:
        """Removes containers that are to end, and returns them; the endpoint's lock is held."""
        kept = self.settings.get("ProvisionedConcurrency", 0)
        idle = [copy for copy in self.copies[kept:] if copy.is_idle()]
        self.copies = [copy for copy in self.copies if copy not in idle]
        return idle

    def drop(self, copy: ServerlessCopy) -> None:
        self.copies = [each for each in self.copies if each is not copy]

    def request_stop(self) -> None:
        for copy in self.copies:
            copy.request_stop()

    def stop(self) -> None:
        for copy in self.copies:
            copy.stop()

    def drain(self, timeout_seconds: float) -> None:
        for copy in self.copies:
            copy.drain(timeout_seconds)
