"""`make verify-aws` from end to end: the real CDK CLI, s5cmd and slipway on an embedded AWS."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from tests.embedded.hosting.conftest import Account
from tests.support.accounts import embedded_aws, shell_environment
from tests.support.networks import make_network
from tests.support.pages import ROOT
from tests.support.prepared_accounts import bootstrap
from tests.support.stacks import Stacks
from tests.support.starts import count_start
from tools import prose
from tools.verify_aws.project import IMAGE_TAG
from tools.verify_aws.report import STEPS

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(900)]

REGION = "us-east-1"
PROGRAM = Path(__file__).with_name("djl_stand_in.py")
STAGES = [
    "deploy foundation",
    "publish",
    "plan",
    "preflight",
    "deploy endpoint",
    "invoke",
    "what is declared",
    "metrics",
    "change an alarm",
    "status",
    *(step.name for step in STEPS),
    "destroy verify-aws",
    "destroy foundation",
    "remove the requests",
]


@pytest.fixture
def stacks(tmp_path: Path) -> Iterator[Stacks]:
    """A bootstrapped account in which the image is published."""
    programs = {"djl-inference": ContainerProgram((sys.executable, str(PROGRAM)))}
    with embedded_aws(tmp_path / "aws", programs=programs, time_scale=0.05) as server:
        clients = LoopbackClients(server.connection)
        found = Stacks(server, clients, REGION)
        bootstrap(found.client)
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
            "config": {"digest": f"sha256:{'0' * 64}", "size": 1},
            "layers": [],
        }
        found.client("ecr").create_repository(repositoryName="djl-inference")
        found.client("ecr").put_image(
            repositoryName="djl-inference", imageManifest=json.dumps(manifest), imageTag=IMAGE_TAG
        )
        yield found
        clients.close()


def test_a_whole_run_leaves_what_it_lists_and_the_commands_remove_that(stacks, tmp_path):
    variables = {
        **shell_environment(stacks.aws.connection),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "AWS_MAX_ATTEMPTS": "1",
    }
    count_start("cdk")
    folder = tmp_path / "run"
    network = make_network(stacks.client("ec2"))
    network.connect_s3()
    options = ("--subnets", ",".join(network.subnet_ids), "--security-groups", network.group("q"))
    with minute_after_failures(stacks):
        result = subprocess.run(
            [
                *(sys.executable, "-m", "tools.verify_aws", "--deep", "--yes", "--json"),
                *("--folder", str(folder), *options),
            ],
            cwd=ROOT,
            env=variables,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["result"] == "ok"
    assert [stage["name"] for stage in report["stages"]] == STAGES
    assert {stage["outcome"] for stage in report["stages"]} == {"ok"}
    assert report["answered_by"] == stacks.aws.connection.url
    assert "123456789012" not in result.stdout
    check_the_answers((folder / "deep.md").read_text())
    check_the_account(stacks, report)
    remove(variables, result.stderr)
    names = {bucket["Name"] for bucket in stacks.client("s3").list_buckets()["Buckets"]}
    assert names == {f"cdk-hnb659fds-assets-123456789012-{REGION}"}
    assert customer_keys(stacks) == ["PendingDeletion"]


@contextmanager
def minute_after_failures(stacks: Stacks) -> Iterator[None]:
    """Lets a minute pass whenever requests have failed on a new fleet, so that its alarm is due."""
    ended = threading.Event()

    def look() -> None:
        account = Account(stacks.clients, Path())
        while not ended.wait(0.5):
            for endpoint in account.sagemaker.list_endpoints(StatusEquals="Updating")["Endpoints"]:
                name = endpoint["EndpointName"]
                described = account.sagemaker.describe_endpoint(EndpointName=name)
                if "PendingDeploymentSummary" not in described:
                    continue  # it has ended meanwhile
                config = described["PendingDeploymentSummary"]["EndpointConfigName"]
                fleet = {"VariantName": "AllTraffic", "EndpointConfigName": config}
                failed = account.metric("Invocation5XXErrors", EndpointName=name, **fleet)
                if failed.get("Sum", 0) >= 3:
                    stacks.aws.pass_minute()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


ANSWERS = {
    "first log line": r"from \d+ s after the endpoint's creation: `.*GET /ping",
    "change the type": r"by the name `invocations-per-instance-\w+`. The scalable target had its",
    "change the target": "CloudFormation changed the value in place, after",
    "a broken container": "`FailureReason` was `The primary container .* CloudFormation failed at "
    "`HostingEndpoint.* The stack was rolled back after",
    "only the rollout": "The endpoint serves .* configuration after",
    "only a tag": "The endpoint serves the same configuration .* never seen being updated, and the "
    "number of new instances with a log is 0. The endpoint has the tag.",
    "an alarm": "RolloutNewFleetServerErrorRate.*` went off. SageMaker's `FailureReason` was `The "
    "update was rolled back because of alarms .* The stack was rolled back .* [1-9][0-9]* failed",
    "the target after it": "had another ARN. CloudFormation refused: `Scaling.* was not found.*"
    "`UPDATE_ROLLBACK_FAILED`. After `cdk rollback --orphan` it was not.",
    "a failing request": "after .* s, with `.*a failure on purpose",
    "deletion in a VPC": r"The network interfaces were gone \d+ s after the endpoint",
}


def check_the_answers(text: str) -> None:
    """Compares the answers with what happens here, and reads the lines as a page is read."""
    lines = text.splitlines()
    assert len(lines) == len(STEPS)
    for step, line in zip(STEPS, lines, strict=True):
        assert line.startswith(f"- **{step.title}** (the embedded AWS, ")
        assert re.search(ANSWERS[step.name], line), line
        assert line.endswith(step.not_local)
    assert list(prose.findings(text)) == []


def check_the_account(stacks: Stacks, report: dict[str, Any]) -> None:
    """Compares what is left in the account with what the report lists."""
    kinds = [item["kind"] for item in report["left"]]
    assert kinds == ["bucket", "bucket", "KMS key", "CDK assets"]
    assert all(item["is_meant"] for item in report["left"])
    listed = {item["name"].replace("ACCOUNT", "123456789012") for item in report["left"]}
    buckets = {bucket["Name"] for bucket in stacks.client("s3").list_buckets()["Buckets"]}
    assert buckets == {name for name in listed if not name.startswith("arn:")}
    assert [stack["StackName"] for stack in stacks.api.describe_stacks()["Stacks"]] == [
        "CDKToolkit"
    ]
    assert stacks.client("sagemaker").list_models()["Models"] == []
    assert stacks.client("logs").describe_log_groups()["logGroups"] == []
    assert stacks.client("cloudwatch").describe_alarms()["MetricAlarms"] == []
    assert stacks.client("lambda").list_functions()["Functions"] == []
    assert (
        stacks.client("ssm").get_parameters_by_path(Path="/slipway", Recursive=True)["Parameters"]
        == []
    )
    assert customer_keys(stacks) == ["Enabled"]


def customer_keys(stacks: Stacks) -> list[str]:
    """Returns the states of the keys that Slipway's stacks made; the bootstrap makes none."""
    kms = stacks.client("kms")
    found = [kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"] for key in kms.list_keys()["Keys"]]
    return [
        key["KeyState"]
        for key in found
        if key["KeyManager"] == "CUSTOMER" and "Slipway" in key["Description"]
    ]


def remove(variables: dict[str, str], told: str) -> None:
    """Runs the commands that were printed, in a shell, as a user would paste them."""
    commands = [line.strip()[2:] for line in told.splitlines() if line.startswith("    $ ")]
    assert len(commands) == 5
    script = "\n".join(["set -e", *commands])
    result = subprocess.run(
        ["bash", "-c", script], env=variables, text=True, capture_output=True, check=False
    )
    assert result.returncode == 0, f"{script}\n{result.stdout}{result.stderr}"
