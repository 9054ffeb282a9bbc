import contextlib
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.telemetry.metrics import NAMESPACE
from tests.embedded.hosting import composition
from tests.support.roles import make_role
from tests.support.starts import count_start
from tests.support.waiting import LASTING_SECONDS, eventually

REGION = "us-east-1"
CANARY = {
    "BlueGreenUpdatePolicy": {
        "TrafficRoutingConfiguration": {
            "Type": "CANARY",
            "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 50},
            "WaitIntervalInSeconds": 30,
        },
        "TerminationWaitInSeconds": 30,
    },
}
_counter = iter(range(1_000_000))


def refused(call: Any, *arguments: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(*arguments, **request)
    assert caught.value.response["Error"]["Code"] in ("ValidationException", "ValidationError")
    return caught.value.response["Error"]["Message"]


def await_gone(describe: Any, **names: str) -> None:
    def gone() -> bool:
        try:
            describe(**names)
        except ClientError:
            return True
        return False

    eventually(gone, pause_seconds=LASTING_SECONDS)


class Account:
    image: str = composition.IMAGE
    role = "arn:aws:iam::123456789012:role/hosting"

    def __init__(self, clients: LoopbackClients, directory: Path) -> None:
        self.directory = directory
        self.clients = clients
        self.sagemaker = self.client("sagemaker")
        self.runtime = self.client("sagemaker-runtime")
        self.s3 = self.client("s3")
        self.logs = self.client("logs")
        self.cloudwatch = self.client("cloudwatch")

    def prepare(self) -> None:
        iam = self.client("iam")
        # moto's back ends are the process's, not the server's.
        with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
            make_role(iam, "hosting")
        self.s3.create_bucket(Bucket="artifacts")
        self.put("model/files/config.json", b"{}")
        self.put("model/files/1/weights.bin", b"weights")

    def put(self, key: str, body: bytes) -> None:
        self.s3.put_object(Bucket="artifacts", Key=key, Body=body)

    def put_archive(self, key: str, files: dict[str, bytes]) -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        self.put(key, buffer.getvalue())

    def name(self) -> str:
        return f"n{next(_counter)}"

    def source(self, uri: str = "s3://artifacts/model/files/") -> dict[str, Any]:
        described = {"S3Uri": uri, "S3DataType": "S3Prefix", "CompressionType": "None"}
        return {"ModelDataSource": {"S3DataSource": described}}

    def model(
        self, mode: str = "ok", mark: str = "", *, network: Any = None, **container: Any
    ) -> str:
        """Makes a model of the stand-in; `network` is its VpcConfig."""
        name = self.name()
        environment = {"MODE": mode, "MARK": mark}
        primary = {"Image": self.image, "Environment": environment, **(container or self.source())}
        more = {} if network is None else {"VpcConfig": network}
        self.sagemaker.create_model(
            ModelName=name, ExecutionRoleArn=self.role, PrimaryContainer=primary, **more
        )
        return name

    def variant(self, model: str, name: str = "AllTraffic", **more: Any) -> dict[str, Any]:
        return {
            "VariantName": name,
            "ModelName": model,
            "InstanceType": "ml.g5.xlarge",
            "InitialInstanceCount": 1,
            **more,
        }

    def config(self, *variants: dict[str, Any], **more: Any) -> str:
        name = self.name()
        self.sagemaker.create_endpoint_config(
            EndpointConfigName=name, ProductionVariants=list(variants), **more
        )
        return name

    def begin(self, config: str) -> str:
        name = self.name()
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=config)
        return name

    def serve(self, *variants: dict[str, Any], **more: Any) -> str:
        """Starts an endpoint that comes into service; `more` is of its configuration."""
        name = self.begin(self.config(*variants, **more))
        described = self.settled(name)
        assert described["EndpointStatus"] == "InService", described.get("FailureReason")
        return name

    def failure(self, *variants: dict[str, Any], **more: Any) -> str:
        described = self.settled(self.begin(self.config(*variants, **more)))
        assert described["EndpointStatus"] == "Failed"
        return described["FailureReason"]

    def update(self, name: str, config: str, **more: Any) -> dict[str, Any]:
        self.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=config, **more)
        return self.settled(name)

    def scale(self, name: str, variant: str = "AllTraffic", **change: Any) -> dict[str, Any]:
        """Changes weight or instances of a variant; returns what the endpoint shows afterwards."""
        self.sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=name,
            DesiredWeightsAndCapacities=[{"VariantName": variant, **change}],
        )
        return self.settled(name)

    def endpoint(self, mode: str = "ok", mark: str = "", **more: Any) -> str:
        return self.serve(self.variant(self.model(mode, mark), **more))

    def settled(self, name: str) -> dict[str, Any]:
        def describe() -> dict[str, Any] | None:
            described = self.sagemaker.describe_endpoint(EndpointName=name)
            return described if described["EndpointStatus"] in ("InService", "Failed") else None

        return eventually(describe, pause_seconds=LASTING_SECONDS)

    def delete(self, name: str) -> None:
        self.sagemaker.delete_endpoint(EndpointName=name)
        await_gone(self.sagemaker.describe_endpoint, EndpointName=name)

    def logged(self, name: str, group: str = "Endpoints") -> list[str]:
        """The lines in the log of an endpoint or a component; none without a log."""
        try:
            found = self.logs.filter_log_events(logGroupName=f"/aws/sagemaker/{group}/{name}")
        except self.logs.exceptions.ResourceNotFoundException:
            return []
        return [event["message"] for event in found["events"]]

    def metric(self, name: str, *, namespace: str = NAMESPACE, **dimensions: str) -> dict[str, Any]:
        """The statistics of all values of a metric; empty where it has none."""
        now = datetime.now(UTC)
        points = self.cloudwatch.get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Dimensions=[{"Name": each, "Value": value} for each, value in dimensions.items()],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(hours=22),
            Period=86_400,
            Statistics=["Sum", "SampleCount", "Minimum", "Maximum", "Average"],
        )["Datapoints"]
        return points[0] if points else {}

    def put_alarm_in(self, state: str, name: str, **dimensions: str) -> None:
        self.cloudwatch.put_metric_alarm(
            AlarmName=name,
            Namespace="AWS/SageMaker",
            MetricName="Invocation5XXErrors",
            Dimensions=[{"Name": each, "Value": value} for each, value in dimensions.items()],
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanOrEqualToThreshold",
        )
        self.set_alarm(state, name)

    def set_alarm(self, state: str, name: str) -> None:
        self.cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="as a test")

    def client(self, service: str) -> Any:
        return self.clients.client(service, REGION)

    def mailbox(self, name: str) -> "Mailbox":
        return Mailbox(self.client, name)

    def invoke(self, name: str, body: str = "x", **more: Any) -> str:
        answer = self.runtime.invoke_endpoint(EndpointName=name, Body=body.encode(), **more)
        return answer["Body"].read().decode()


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


def may(*actions: str, on: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": on, **more}


class Role:
    """The role of a test's models, whose rights the test replaces."""

    def __init__(self, account: Account) -> None:
        self._iam = account.client("iam")
        self.name = f"role-{account.name()}"
        self.arn = make_role(self._iam, self.name)
        self.id = self._iam.get_role(RoleName=self.name)["Role"]["RoleId"]

    def allow(self, *statements: dict[str, Any]) -> None:
        document = {"Version": "2012-10-17", "Statement": statements}
        self._iam.put_role_policy(
            RoleName=self.name, PolicyName="p", PolicyDocument=json.dumps(document)
        )

    def delete(self) -> None:
        self._iam.delete_role_policy(RoleName=self.name, PolicyName="p")
        self._iam.delete_role(RoleName=self.name)

    def denied(self, action: str) -> str:
        """The beginning of IAM's message of a denial."""
        return (
            f"User: arn:aws:sts::123456789012:assumed-role/{self.name}/SageMaker is not authorized "
            f"to perform: {action}"
        )


@pytest.fixture
def role(account: Account) -> Iterator[Role]:
    role = Role(account)
    account.role = role.arn
    yield role
    del account.role


@contextlib.contextmanager
def started(directory: Path, **options: Any) -> Iterator[Account]:
    """An account of its own; `options` are those of `composition.hosting`."""
    count_start("server")
    with composition.hosting(directory, **options) as clients:
        account = Account(clients, directory)
        account.prepare()
        yield account


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with started(tmp_path_factory.mktemp("hosting")) as account:
        yield account


@pytest.fixture(scope="module")
def hosted(account: Account) -> Any:
    # It imports this module.
    from tests.embedded.hosting.hosted_components import Hosted

    return Hosted(account)


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """An account in which a minute's timeout is over after 1.2 seconds."""
    with started(tmp_path_factory.mktemp("hurried"), time_scale=0.02) as account:
        yield account
