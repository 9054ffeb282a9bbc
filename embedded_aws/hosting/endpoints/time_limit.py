"""The time limit of an update of an endpoint."""

import threading

from slipway.embedded_aws.hosting.fleets.fleet import Fleet
from slipway.embedded_aws.hosting.fleets.rollback_alarms import time_limit_error
from slipway.embedded_aws.hosting.fleets.variant import VariantStartError


class TimeLimit:
    """The time limit of an update; when it is over, the new fleet fails to start."""

    def __init__(self, seconds: float | None, time_scale: float, fleet: Fleet) -> None:
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
                self.reason = time_limit_error(seconds)
            fleet.request_stop()

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
