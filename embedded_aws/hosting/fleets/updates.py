"""Changes in the background, and what undoes an update: alarms, and the time limit."""

import logging
import threading
from collections.abc import Callable, Sequence

from slipway.embedded_aws.hosting.fleets.rollout import Guards
from slipway.embedded_aws.hosting.fleets.running_variant import HostingContext
from slipway.embedded_aws.hosting.fleets.variant import VariantStartError
from slipway.embedded_aws.iam.permissions import may
from slipway.embedded_aws.identity import ACCOUNT_ID

logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0


class Background:
    """The changes in progress. Once `closing` is set, a change that waits must end."""

    def __init__(self) -> None:
        self.closing = threading.Event()
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()

    def start(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            finally:
                with self._lock:
                    self._threads.discard(thread)

        thread = threading.Thread(target=run, name="hosting-change", daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()

    def join(self) -> None:
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join()


def watch(
    context: HostingContext,
    region: str,
    role: str | None,
    guards: Guards,
    closing: threading.Event,
    limit: "TimeLimit",
) -> None:
    """Waits on the account's clock, and raises as soon as the update must be undone.

    The alarms are read at least once, as the execution role; a model without one is allowed
    everything. The message of the `VariantStartError` says why the update is undone.
    """
    deadline = context.deadline(guards.wait_seconds)
    watched = [name for name in guards.alarms if role is None or _may_read(role, region, name)]
    while True:
        _require_calm(context, region, watched)
        limit.check()
        remaining = deadline.remaining_seconds()
        if remaining <= 0:
            return
        if closing.wait(min(remaining, _POLL_SECONDS)):
            raise VariantStartError("The embedded AWS was stopped.")


def _may_read(role: str, region: str, name: str) -> bool:
    """Returns whether a role may read an alarm, without which SageMaker does not watch it.

    https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-configuration.html
    """
    arn = f"arn:aws:cloudwatch:{region}:{ACCOUNT_ID}:alarm:{name}"
    if may(role, "cloudwatch:DescribeAlarms", arn):
        return True
    logger.warning(
        "alarm %s undoes no update, because %s may not cloudwatch:DescribeAlarms.", name, role
    )
    return False


def _require_calm(context: HostingContext, region: str, names: Sequence[str]) -> None:
    if not names:
        return
    cloudwatch = context.clients.client("cloudwatch", region)
    alarms = cloudwatch.describe_alarms(AlarmNames=list(names))["MetricAlarms"]
    fired = [alarm["AlarmName"] for alarm in alarms if alarm["StateValue"] == "ALARM"]
    if fired:
        raise VariantStartError(
            f"The update was rolled back because of alarms in state ALARM: {', '.join(fired)}."
        )


class TimeLimit:
    """The time limit of an update, if it has one; `on_end` is called when it is over."""

    def __init__(
        self, seconds: float | None, time_scale: float, on_end: Callable[[], None]
    ) -> None:
        self.reason: str | None = None
        self._lock = threading.Lock()
        self._cancelled = False
        self._timer: threading.Timer | None = None
        if seconds is None:
            return

        def expire() -> None:
            with self._lock:
                if self._cancelled:
                    return
                self.reason = (
                    f"The update was rolled back because it took longer than the {seconds:g} "
                    "seconds of MaximumExecutionTimeoutInSeconds."
                )
            on_end()

        self._timer = threading.Timer(seconds * time_scale, expire)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Stops watching the deadline; an update that was already cancelled stays cancelled."""
        with self._lock:
            self._cancelled = True
        if self._timer is not None:
            self._timer.cancel()

    def check(self) -> None:
        """Raises `VariantStartError` if the update took too long."""
        if self.reason is not None:
            raise VariantStartError(self.reason)
