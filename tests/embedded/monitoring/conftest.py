"""An embedded AWS with an endpoint, whose alarms see the minutes pass as fast as a test likes."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.server import EmbeddedAws
from tests.embedded.hosting import composition, conftest
from tests.support.accounts import embedded_aws
from tests.support.clocks import MovableClock
from tests.support.waiting import eventually

_LAST_SECOND_TO_BEGIN = 40


def on_metric(name: str, **members: Any) -> dict[str, Any]:
    """PutMetricAlarm's members of an alarm on a metric of its name; None leaves a member out."""
    described = {
        "AlarmName": name,
        "Namespace": "tests",
        "MetricName": name,
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 5,
        "ComparisonOperator": "GreaterThanThreshold",
        **members,
    }
    return {member: value for member, value in described.items() if value is not None}


class Account(conftest.Account):
    def __init__(self, server: EmbeddedAws, directory: Path) -> None:
        super().__init__(LoopbackClients(server.connection), directory)
        self.server = server

    def within_a_minute(self, act: Callable[[], None]) -> datetime:
        """Does something so that all of it is measured in one minute, which is returned.

        Late in a minute of the real clock it waits for the next: an alarm that is evaluated over a
        part of it would tell of that minute.
        """
        eventually(lambda: self.server._clock() % 60 < _LAST_SECOND_TO_BEGIN, seconds=60)
        begun = self._minute()
        act()
        assert self._minute() == begun, "it took too long"
        return begun

    def _minute(self) -> datetime:
        return datetime.fromtimestamp(self.server._clock(), UTC).replace(second=0, microsecond=0)

    def put_alarm(self, name: str, **members: Any) -> None:
        self.cloudwatch.put_metric_alarm(**on_metric(name, **members))

    def alarm(self, name: str) -> dict[str, Any]:
        (found,) = self.cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
        return found

    def state(self, name: str) -> str:
        return self.alarm(name)["StateValue"]


@pytest.fixture
def account(tmp_path: Path, clock: MovableClock) -> Iterator[Account]:
    yield from _account(tmp_path, clock=clock, time_scale=0.02)


@pytest.fixture(scope="module")
def shared_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """One for a module whose tests wait for no alarm; no other may run beside it."""
    yield from _account(tmp_path_factory.mktemp("monitoring"), time_scale=0.02)


@pytest.fixture
def real_account(tmp_path: Path) -> Iterator[Account]:
    """An account as users have it."""
    yield from _account(tmp_path)


def _account(directory: Path, **options: Any) -> Iterator[Account]:
    with embedded_aws(directory, programs=composition.PROGRAMS, **options) as server:
        account = Account(server, directory)
        yield account
        account.clients.close()
