"""An account with one build project, whose buildspec a test may replace."""

import contextlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from tests.embedded.hosting.conftest import may
from tests.support.accounts import connection_to, embedded_aws
from tests.support.roles import make_role
from tests.support.waiting import eventually

REGION = "us-east-1"
PROJECT, BUCKET, GROUP = "publishing", "sources", "/builds/publishing"
MAY_BUILD = [
    may("s3:GetObject", on=f"arn:aws:s3:::{BUCKET}/*"),
    may(
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        on=f"arn:aws:logs:{REGION}:123456789012:log-group:{GROUP}:*",
    ),
    may(
        "secretsmanager:GetSecretValue",
        on=f"arn:aws:secretsmanager:{REGION}:123456789012:secret:allowed-*",
    ),
]


class Account:
    def __init__(self, url: str) -> None:
        self._clients = LoopbackClients(connection_to(url))
        self.codebuild = self.client("codebuild")

    def client(self, service: str) -> Any:
        return self._clients.client(service, REGION)

    def prepare(self) -> None:
        role = make_role(self.client("iam"), "building", service="codebuild.amazonaws.com")
        self.may(MAY_BUILD)
        self.client("s3").create_bucket(Bucket=BUCKET)
        self.codebuild.create_project(
            name=PROJECT,
            serviceRole=role,
            source={"type": "NO_SOURCE", "location": "none", "buildspec": "version: 0.2"},
            artifacts={"type": "NO_ARTIFACTS"},
            environment={
                "type": "LINUX_CONTAINER",
                "image": "aws/codebuild/amazonlinux-x86_64-standard:5.0",
                "computeType": "BUILD_GENERAL1_SMALL",
                "environmentVariables": [{"name": "PLAIN", "value": "of the project"}],
            },
            logsConfig={"cloudWatchLogs": {"status": "ENABLED", "groupName": GROUP}},
            timeoutInMinutes=5,
        )

    def may(self, statements: list[dict[str, Any]]) -> None:
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        self.client("iam").put_role_policy(
            RoleName="building", PolicyName="p", PolicyDocument=document
        )

    def start(self, phases: Mapping[str, list[str]], **request: Any) -> str:
        """Starts a build of these phases' commands; returns its id."""
        spec = {"version": 0.2, "phases": {n: {"commands": each} for n, each in phases.items()}}
        request = {"buildspecOverride": json.dumps(spec), **request}
        build = self.codebuild.start_build(projectName=PROJECT, **request)["build"]
        return build["id"]

    def describe(self, identifier: str) -> dict[str, Any]:
        (found,) = self.codebuild.batch_get_builds(ids=[identifier])["builds"]
        return found

    def ended(self, identifier: str) -> dict[str, Any]:
        eventually(lambda: self.describe(identifier)["buildComplete"])
        return self.describe(identifier)

    def done(self, phases: Mapping[str, list[str]], **request: Any) -> dict[str, Any]:
        return self.ended(self.start(phases, **request))

    def log(self, build: Mapping[str, Any]) -> list[str]:
        logs = build["logs"]
        with contextlib.suppress(self.client("logs").exceptions.ResourceNotFoundException):
            events = self.client("logs").get_log_events(
                logGroupName=logs["groupName"],
                logStreamName=logs["streamName"],
                startFromHead=True,
            )["events"]
            return [event["message"] for event in events]
        return []

    def output(self, build: Mapping[str, Any]) -> list[str]:
        return [line for line in self.log(build) if not line.startswith("[Container] ")]

    def put_source(self, key: str, files: Mapping[str, str]) -> str:
        """Puts a ZIP file into the bucket; returns its place as a source."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        self.client("s3").put_object(Bucket=BUCKET, Key=key, Body=content.getvalue())
        return f"{BUCKET}/{key}"


def phases(build: dict[str, Any]) -> dict[str, str]:
    return {each["phaseType"]: each.get("phaseStatus", "") for each in build["phases"]}


def context(build: dict[str, Any], phase: str) -> tuple[str, str]:
    (found,) = [each for each in build["phases"] if each["phaseType"] == phase]
    (only,) = found["contexts"]
    return only["statusCode"], only["message"]


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with embedded_aws(tmp_path_factory.mktemp("builds")) as server:
        account = Account(server.connection.url)
        account.prepare()
        yield account
