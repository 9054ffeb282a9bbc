import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.processes.process import SupervisedProcess
from tests.embedded.hosting import conftest
from tests.embedded.training import composition
from tests.embedded.training.publishing import Publishing
from tests.support.accounts import connection_to, embedded_aws
from tests.support.roles import make_role
from tests.support.waiting import LASTING_SECONDS, eventually

ENDED = ("Completed", "Failed", "Stopped")
_counter = iter(range(1_000_000))


class Account(conftest.Account):
    image = composition.IMAGE
    server_image = composition.SERVER_IMAGE
    role = "arn:aws:iam::123456789012:role/compiling"
    bucket = "training"

    def __init__(self, url: str, directory: Path) -> None:
        super().__init__(LoopbackClients(connection_to(url)), directory)
        self.url = url

    def prepare(self) -> None:
        make_role(self.client("iam"), "compiling")
        self.s3.create_bucket(Bucket=self.bucket)

    def weights(self, mode: str = "ok") -> str:
        prefix = f"weights/{next(_counter)}/"
        for name, body in (("mode", mode), ("config.json", "{}"), ("shards/1.bin", "weights")):
            self.s3.put_object(Bucket=self.bucket, Key=f"{prefix}{name}", Body=body.encode())
        return f"s3://{self.bucket}/{prefix}"

    def request(self, mode: str = "ok", **changes: Any) -> dict[str, Any]:
        channel = {
            "ChannelName": "weights",
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": self.weights(mode)}},
        }
        return {
            "TrainingJobName": f"job-{next(_counter)}",
            "AlgorithmSpecification": {
                "TrainingImage": self.image,
                "TrainingInputMode": "File",
                "ContainerArguments": ["compile"],
            },
            "RoleArn": self.role,
            "HyperParameters": {"target": "cpu"},
            "InputDataConfig": [channel],
            "OutputDataConfig": {
                "S3OutputPath": f"s3://{self.bucket}/compile/",
                "CompressionType": "NONE",
            },
            "ResourceConfig": {
                "InstanceType": "ml.g4dn.xlarge",
                "InstanceCount": 1,
                "VolumeSizeInGB": 30,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
            **changes,
        }

    def start(self, mode: str = "ok", **changes: Any) -> str:
        request = self.request(mode, **changes)
        self.sagemaker.create_training_job(**request)
        return request["TrainingJobName"]

    def describe(self, name: str) -> dict[str, Any]:
        return self.sagemaker.describe_training_job(TrainingJobName=name)

    def ended(self, name: str) -> dict[str, Any]:
        eventually(
            lambda: self.describe(name)["TrainingJobStatus"] in ENDED,
            pause_seconds=LASTING_SECONDS,
        )
        return self.describe(name)

    def done(self, mode: str = "ok", **changes: Any) -> dict[str, Any]:
        return self.ended(self.start(mode, **changes))

    def files(self, prefix: str) -> dict[str, bytes]:
        found = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", ())
        return {
            item["Key"].removeprefix(prefix): self.s3.get_object(
                Bucket=self.bucket, Key=item["Key"]
            )["Body"].read()
            for item in found
        }

    def log_lines(self, name: str) -> list[str]:
        group = "/aws/sagemaker/TrainingJobs"
        (stream,) = self.logs.describe_log_streams(
            logGroupName=group, logStreamNamePrefix=f"{name}/"
        )["logStreams"]
        assert stream["logStreamName"].startswith(f"{name}/algo-1-")
        events = self.logs.get_log_events(
            logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True
        )["events"]
        return [event["message"] for event in events]

    def pid(self, name: str) -> int:
        """Waits until the slow program runs and returns its process id."""
        log = self.directory / "logs" / f"training-{name}.log"
        eventually(lambda: log.exists() and "pid " in log.read_text())
        return int(log.read_text().rpartition("pid ")[2])


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the pause between two looks at a job: the jobs of these tests end in a moment."""
    monkeypatch.setattr("slipway.publishing.training._FIRST_PAUSE_SECONDS", 0.05)


@contextlib.contextmanager
def started(directory: Path, **options: Any) -> Iterator[Account]:
    with embedded_aws(directory, programs=composition.PROGRAMS, **options) as server:
        account = Account(server.connection.url, directory)
        account.prepare()
        yield account


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with started(tmp_path_factory.mktemp("training")) as account:
        yield account


@pytest.fixture
def publishing(account: Account, tmp_path: Path) -> Publishing:
    return Publishing(account, tmp_path)


@pytest.fixture
def late(account: Account, monkeypatch: pytest.MonkeyPatch) -> Account:
    """An account in which every job has used up its time as soon as its program waits."""

    def waiting() -> set[Path]:
        logs = (account.directory / "logs").glob("training-*.log")
        return {path for path in logs if "waiting, pid " in path.read_text()}

    before = waiting()

    def exits_within(process: SupervisedProcess, _seconds: float) -> bool:
        eventually(lambda: process.exited.is_set() or waiting() > before)
        return process.exited.is_set()

    monkeypatch.setattr("slipway.embedded_aws.training.run.exits_within", exits_within)
    return account
