"""Minutes that pass at once in the account: `slipway local pass-minutes`."""

import itertools
import time

import httpx
import pytest

from slipway.embedded_aws.clock import AccountClock, Deadline
from slipway.embedded_aws.identity import MINUTE_PATH
from tests.embedded.monitoring.conftest import Account


@pytest.fixture(scope="module")
def account(shared_account: Account) -> Account:
    return shared_account


def put_error(account: Account, name: str) -> None:
    data = [{"MetricName": name, "Value": 9}]
    account.cloudwatch.put_metric_data(Namespace="tests", MetricData=data)


def test_an_alarm_is_raised_and_over_in_the_minutes_that_pass(account: Account) -> None:
    account.put_alarm("raised", TreatMissingData="notBreaching")
    # A minute begins, so that it does not end of itself meanwhile.
    account.server.pass_minute()
    put_error(account, "raised")
    before = time.time()
    passed = account.server.pass_minute()
    assert account.state("raised") == "ALARM"
    # The minute is over, and the next one has only begun.
    assert passed["now_seconds"] % 60 < 10
    assert before < passed["now_seconds"] - passed["ahead_seconds"] <= time.time()
    updated = account.alarm("raised")["StateUpdatedTimestamp"].timestamp()
    assert passed["now_seconds"] - 5 < updated <= passed["now_seconds"]
    # CloudWatch looks back further than one minute where values are missing.
    for _ in range(5):
        again = account.server.pass_minute()
    assert account.state("raised") == "OK"
    assert again["ahead_seconds"] > passed["ahead_seconds"]
    # A value without a time counts in the account's minute, which is ahead of the machine's.
    put_error(account, "raised")
    account.server.pass_minute()
    assert account.state("raised") == "ALARM"


def test_each_of_the_minutes_is_evaluated(account: Account) -> None:
    account.put_alarm("counted", EvaluationPeriods=3, TreatMissingData="notBreaching")
    account.server.pass_minute()
    for state in ("OK", "OK", "ALARM"):
        put_error(account, "counted")
        account.server.pass_minute()
        assert account.state("counted") == state


def test_a_minute_ends_when_its_schedules_have_their_instances(account: Account) -> None:
    account.prepare()
    scaling, name = account.client("application-autoscaling"), account.endpoint()
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{name}/variant/AllTraffic",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling.register_scalable_target(**target, MinCapacity=1, MaxCapacity=5)
    scaling.put_scheduled_action(
        **target,
        ScheduledActionName="always",
        Schedule="rate(1 minute)",
        ScalableTargetAction={"MinCapacity": 3},
    )
    # The action is due in its own minute, or in the next one.
    account.server.pass_minute()
    account.server.pass_minute()
    described = account.sagemaker.describe_endpoint(EndpointName=name)
    assert described["EndpointStatus"] == "InService"
    assert described["ProductionVariants"][0]["CurrentInstanceCount"] == 3
    account.delete(name)


@pytest.mark.parametrize("second", [0.1, 0.7, 59.9])
def test_no_minute_is_left_out(
    account: Account, monkeypatch: pytest.MonkeyPatch, second: float
) -> None:
    """Just after a minute, its alarms are not evaluated yet."""
    evaluated = list[float]()
    alarms = account.server._alarms
    evaluate = alarms.evaluate

    def recorded(cadence_seconds: int, end_seconds: float) -> None:
        if cadence_seconds == 60:
            evaluated.append(end_seconds)
        evaluate(cadence_seconds, end_seconds)

    monkeypatch.setattr(alarms, "evaluate", recorded)
    clock = account.server._clock
    clock.ahead_seconds += 3600 - (clock() - second) % 60
    # Three minutes that begin after that moment, whichever thread evaluates them.
    alarms.evaluate_due()
    evaluated.clear()
    for _ in range(3):
        account.server.pass_minute()
    steps = {later - earlier for earlier, later in itertools.pairwise(evaluated)}
    assert steps == {60.0}
    assert len(evaluated) in (3, 4)


def test_only_a_post_lets_a_minute_pass(account: Account) -> None:
    connection = account.server.connection
    url = connection.url + MINUTE_PATH
    token = {"Authorization": connection.authorization(MINUTE_PATH)}
    assert httpx.get(url, headers=token, timeout=10).status_code != 200
    assert httpx.post(url, timeout=10).status_code == 403
    answer = httpx.post(url, headers=token, timeout=10)
    assert answer.status_code == 200
    assert answer.json()["ahead_seconds"] > 0


def test_the_wait_of_an_update_passes_with_the_minutes() -> None:
    clock = AccountClock()
    assert clock.ahead_seconds == 0
    wait, scaled = Deadline(clock, 120, 1.0), Deadline(clock, 120, 0.01)
    assert 119 < wait.remaining_seconds() <= 120
    assert 1 < scaled.remaining_seconds() <= 1.2
    clock.pass_minute()
    clock.pass_minute()
    # The first of the two minutes had begun already.
    assert wait.remaining_seconds() < 60
    assert scaled.remaining_seconds() < 0.6
    clock.pass_minute()
    assert wait.remaining_seconds() < 0
