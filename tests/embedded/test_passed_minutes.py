"""Minutes that pass at once in the account: `slipway local pass-minutes`."""

import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.clock import AccountClock, Deadline
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from slipway.embedded_aws.identity import MINUTE_PATH
from slipway.embedded_aws.server import EmbeddedAws
from tests.support.accounts import embedded_aws
from tests.support.roles import make_role

REGION = "us-east-1"
STAND_IN = Path(__file__).parent / "hosting" / "stand_in.py"
VARIANT = "endpoint/answers/variant/main"
DIMENSION = "sagemaker:variant:DesiredInstanceCount"


class Account:
    def __init__(self, server: EmbeddedAws, clients: LoopbackClients) -> None:
        self.server = server
        self._clients = clients

    def client(self, service: str) -> Any:
        return self._clients.client(service, REGION)

    def put_alarm(self, **changes: Any) -> None:
        metric = {"Namespace": "tests", "MetricName": "Errors", "Statistic": "Sum", "Period": 60}
        above = {"Threshold": 0, "ComparisonOperator": "GreaterThanThreshold"}
        alarm = {"AlarmName": "errors", "EvaluationPeriods": 1, **metric, **above, **changes}
        self.client("cloudwatch").put_metric_alarm(**alarm, TreatMissingData="notBreaching")

    def put_error(self, metric: str = "Errors") -> None:
        self.client("cloudwatch").put_metric_data(
            Namespace="tests", MetricData=[{"MetricName": metric, "Value": 1}]
        )

    def alarm(self) -> dict[str, Any]:
        [alarm] = self.client("cloudwatch").describe_alarms()["MetricAlarms"]
        found: dict[str, Any] = alarm
        return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    programs = {"tests/stand-in": ContainerProgram((sys.executable, str(STAND_IN)))}
    directory = tmp_path_factory.mktemp("account")
    with embedded_aws(directory, programs=programs, time_scale=0.01) as server:
        yield server


@pytest.fixture
def account(server: EmbeddedAws) -> Iterator[Account]:
    clients = LoopbackClients(server.connection)
    yield Account(server, clients)
    clients.client("cloudwatch", REGION).delete_alarms(AlarmNames=["errors"])
    clients.close()


def test_an_alarm_is_raised_and_over_in_the_minutes_that_pass(account: Account) -> None:
    account.put_alarm()
    # A minute begins, so that it does not end of itself meanwhile.
    account.server.pass_minute()
    account.put_error()
    before = time.time()
    passed = account.server.pass_minute()
    assert account.alarm()["StateValue"] == "ALARM"
    # The minute is over, and the next one has only begun.
    assert passed["now_seconds"] % 60 < 10
    assert before < passed["now_seconds"] - passed["ahead_seconds"] <= time.time()
    updated = account.alarm()["StateUpdatedTimestamp"].timestamp()
    assert passed["now_seconds"] - 5 < updated <= passed["now_seconds"]
    # CloudWatch looks back further than one minute where values are missing.
    for _ in range(5):
        again = account.server.pass_minute()
    assert account.alarm()["StateValue"] == "OK"
    assert again["ahead_seconds"] > passed["ahead_seconds"]
    # A value without a time counts in the account's minute, which is ahead of the machine's.
    account.put_error()
    account.server.pass_minute()
    assert account.alarm()["StateValue"] == "ALARM"


def test_each_of_the_minutes_is_evaluated(account: Account) -> None:
    account.put_alarm(MetricName="Faults", EvaluationPeriods=3)
    account.server.pass_minute()
    for state in ("OK", "OK", "ALARM"):
        account.put_error("Faults")
        account.server.pass_minute()
        assert account.alarm()["StateValue"] == state


def test_a_minute_ends_when_its_schedules_have_their_instances(account: Account) -> None:
    sagemaker, scaling = account.client("sagemaker"), account.client("application-autoscaling")
    role = make_role(account.client("iam"), "hosting")
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/tests/stand-in:1"
    sagemaker.create_model(
        ModelName="answers", ExecutionRoleArn=role, PrimaryContainer={"Image": image}
    )
    variant = {
        "VariantName": "main",
        "ModelName": "answers",
        "InstanceType": "ml.m5.xlarge",
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName="answers", ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName="answers", EndpointConfigName="answers")
    sagemaker.get_waiter("endpoint_in_service").wait(
        EndpointName="answers", WaiterConfig={"Delay": 1, "MaxAttempts": 60}
    )
    target = {
        "ServiceNamespace": "sagemaker", "ResourceId": VARIANT, "ScalableDimension": DIMENSION,
    }  # fmt: skip
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
    described = sagemaker.describe_endpoint(EndpointName="answers")
    assert described["EndpointStatus"] == "InService"
    assert described["ProductionVariants"][0]["CurrentInstanceCount"] == 3
    scaling.deregister_scalable_target(**target)
    sagemaker.delete_endpoint(EndpointName="answers")


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


def test_only_a_post_lets_a_minute_pass(server: EmbeddedAws) -> None:
    url = server.connection.url + MINUTE_PATH
    token = {"Authorization": server.connection.authorization(MINUTE_PATH)}
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
