"""An embedded AWS with an endpoint, whose alarms see the minutes pass as fast as a test likes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.clock import AccountClock
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from tests.support.accounts import embedded_aws
from tests.support.clocks import MovableClock
from tests.support.roles import make_role
from tests.support.waiting import LASTING_SECONDS, eventually

REGION = "eu-central-1"
_LAST_SECOND_TO_BEGIN = 40
IMAGE = f"123456789012.dkr.ecr.{REGION}.amazonaws.com/tests/stand-in:1"
# Answers what its requests tell it to, see its docstring.
PROGRAM = Path(__file__).parents[1] / "hosting" / "stand_in.py"
PROGRAMS = {"tests/stand-in": ContainerProgram((sys.executable, str(PROGRAM)))}


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


class Account:
    """What a test does in the embedded account."""

    def __init__(self, clients: LoopbackClients, clock: AccountClock) -> None:
        self.clients = clients
        self.clock = clock
        self.cloudwatch = self.client("cloudwatch")
        self._number = 0

    def client(self, service: str) -> Any:
        return self.clients.client(service, REGION)

    def within_a_minute(self, act: Callable[[], None]) -> datetime:
        """Does something so that all of it is measured in one minute, which is returned.

        Late in a minute of the real clock it waits for the next: an alarm that is evaluated over a
        part of it would tell of that minute.
        """
        eventually(lambda: self.clock() % 60 < _LAST_SECOND_TO_BEGIN, seconds=60)
        begun = self._minute()
        act()
        assert self._minute() == begun, "it took too long"
        return begun

    def _minute(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC).replace(second=0, microsecond=0)

    def endpoint(self, name: str, **variant: Any) -> None:
        """Deploys an endpoint of the stand-in and waits until it serves."""
        config = self.endpoint_config(**variant)
        self.client("sagemaker").create_endpoint(EndpointName=name, EndpointConfigName=config)
        self.settled(name)

    def endpoint_config(self, **variant: Any) -> str:
        if not self._number:
            self._prepare()
        self._number += 1
        name = f"stand-in-{self._number}"
        source = {
            "S3Uri": "s3://monitored/model/files/",
            "S3DataType": "S3Prefix",
            "CompressionType": "None",
        }
        self.client("sagemaker").create_model(
            ModelName=name,
            ExecutionRoleArn="arn:aws:iam::123456789012:role/monitoring",
            PrimaryContainer={"Image": IMAGE, "ModelDataSource": {"S3DataSource": source}},
        )
        production = {
            "VariantName": "AllTraffic",
            "ModelName": name,
            "InstanceType": "ml.g5.xlarge",
            "InitialInstanceCount": 1,
            **variant,
        }
        self.client("sagemaker").create_endpoint_config(
            EndpointConfigName=name, ProductionVariants=[production]
        )
        return name

    def _prepare(self) -> None:
        """Makes what endpoints need: a role and model data."""
        iam = self.client("iam")
        make_role(iam, "monitoring")
        s3 = self.client("s3")
        location = {"LocationConstraint": REGION}
        s3.create_bucket(Bucket="monitored", CreateBucketConfiguration=location)
        s3.put_object(Bucket="monitored", Key="model/files/config.json", Body=b"{}")

    def settled(self, name: str) -> dict[str, Any]:
        def described() -> dict[str, Any] | None:
            found: dict[str, Any] = self.client("sagemaker").describe_endpoint(EndpointName=name)
            return found if found["EndpointStatus"] in ("InService", "Failed") else None

        endpoint: dict[str, Any] = eventually(described, pause_seconds=LASTING_SECONDS)
        assert endpoint["EndpointStatus"] == "InService", endpoint
        return endpoint

    def invoke(self, name: str, body: str = "x") -> None:
        self.client("sagemaker-runtime").invoke_endpoint(EndpointName=name, Body=body.encode())

    def fail(self, name: str, times: int = 1) -> None:
        """Makes the container answer 500."""
        runtime = self.client("sagemaker-runtime")
        for _ in range(times):
            with pytest.raises(runtime.exceptions.ModelError):
                runtime.invoke_endpoint(EndpointName=name, Body=b"error 500 no")

    def put_alarm(self, name: str, **members: Any) -> None:
        self.cloudwatch.put_metric_alarm(**on_metric(name, **members))

    def alarm(self, name: str) -> dict[str, Any]:
        (found,) = self.cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
        return found

    def state(self, name: str) -> str:
        return self.alarm(name)["StateValue"]

    def mailbox(self, name: str) -> Mailbox:
        return Mailbox(self.client, name)


class Mailbox:
    """A topic with a queue that is subscribed to it, and what was written to the topic."""

    def __init__(self, client: Callable[[str], Any], name: str) -> None:
        self._sqs, sns = client("sqs"), client("sns")
        self.topic = sns.create_topic(Name=name)["TopicArn"]
        self._queue = self._sqs.create_queue(QueueName=name)["QueueUrl"]
        asked = {"QueueUrl": self._queue, "AttributeNames": ["QueueArn"]}
        arn = self._sqs.get_queue_attributes(**asked)["Attributes"]["QueueArn"]
        sns.subscribe(TopicArn=self.topic, Protocol="sqs", Endpoint=arn)

    def next(self) -> dict[str, Any]:
        """Waits for the next notification: SNS's envelope."""
        receive = self._sqs.receive_message
        asked = {"QueueUrl": self._queue, "MaxNumberOfMessages": 1}
        (message,) = eventually(lambda: receive(**asked).get("Messages", []))
        self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])
        return json.loads(message["Body"])

    def is_empty(self) -> bool:
        return not self._sqs.receive_message(QueueUrl=self._queue).get("Messages")


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def account(tmp_path: Path, clock: MovableClock) -> Iterator[Account]:
    """An account whose alarms live on the movable clock."""
    yield from _account(tmp_path, clock, time_scale=0.02)


@pytest.fixture(scope="module")
def shared_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """One for a module whose tests wait for no alarm; no other may run beside it."""
    yield from _account(tmp_path_factory.mktemp("monitoring"))


@pytest.fixture
def real_account(tmp_path: Path) -> Iterator[Account]:
    """An account as users have it."""
    yield from _account(tmp_path)


def _account(
    directory: Path, clock: AccountClock | None = None, **options: Any
) -> Iterator[Account]:
    clock = clock or AccountClock()
    with embedded_aws(directory, programs=PROGRAMS, clock=clock, **options) as server:
        clients = LoopbackClients(server.connection)
        yield Account(clients, clock)
        clients.close()
