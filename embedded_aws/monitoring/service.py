"""CloudWatch of the embedded AWS: moto's, with alarms that evaluate."""

import time
from collections.abc import Callable

from embedded_aws.clients import LoopbackClients
from embedded_aws.monitoring.api import cloudwatch_application
from embedded_aws.monitoring.evaluator import AlarmEvaluator
from embedded_aws.monitoring.notifications import Notifier
from embedded_aws.monitoring.states import AlarmStates


class Monitoring:
    """CloudWatch.

    Args:
        refresh: publishes the values that this server has measured since.
        clock: returns seconds since the epoch; tests move it.
        scale: carries out a scaling policy, see `AlarmEvaluator`.

    Attributes:
        api: the WSGI application that answers CloudWatch's requests.
    """

    def __init__(
        self,
        clients: LoopbackClients,
        *,
        refresh: Callable[[], None],
        clock: Callable[[], float] = time.time,
        scale: Callable[[str, str, float, float], None] = lambda *_: None,
    ) -> None:
        states = AlarmStates(Notifier(clients), clock)
        self._evaluator = AlarmEvaluator(states, clock=clock, refresh=refresh, scale=scale)
        self.api = cloudwatch_application(states, self._evaluator.put_again)

    def start(self) -> None:
        """Starts evaluating."""
        self._evaluator.start()

    def evaluate_due(self) -> None:
        """Evaluates every alarm whose period ended since its last evaluation."""
        self._evaluator.evaluate_due()

    def close(self) -> None:
        """Stops evaluating."""
        self._evaluator.close()
