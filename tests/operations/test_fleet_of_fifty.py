"""`slipway list` of fifty models, timed: run with `-s`, it prints the times of docs/commands.md.

The embedded AWS is a process of its own, as `slipway local start` makes it. The containers are
stand-ins, because fifty real ones need more memory than a laptop has.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import boto3
import pytest

from slipway.embedded_aws import control
from slipway.embedded_aws.identity import ACCESS_KEY_ID
from tests.support.projects import DIGEST, LOCAL, config_text, write_project
from tests.support.slipway_stack import golden_template
from tests.support.stacks import model_tags
from tests.support.starts import count_start
from tests.support.waiting import eventually

pytestmark = [pytest.mark.size("all"), pytest.mark.timeout(240)]

TESTS = Path(__file__).parents[1]
MODELS = [f"model-{number:02}" for number in range(50)]
KEPT = ("ExecutionRole", "HostingModel", "HostingFixedEndpointConfig", "HostingEndpoint", "Alarms")
TRIALS = 5
# The goal is a list within two seconds. Other programs make the wall time longer, and the processor
# time a little. So this bound is for a slower machine's quickest trial, and shows a call or a file
# for each pair of models, which would take ten times as long.
MOST_PROCESSOR_SECONDS = 4.0
SERVER = """\
import sys
from slipway.embedded_aws.__main__ import main
from slipway.embedded_aws.hosting.families import tensorrt
from slipway.embedded_aws.hosting.families.program import ContainerProgram

stand_in = {"slipway/tensorrt": ContainerProgram((sys.executable, sys.argv.pop(1)))}
tensorrt.programs = lambda sources: stand_in
sys.exit(main(sys.argv[1:]))
"""


class Used(NamedTuple):
    """Wall time, and the processor time of the command and of the embedded AWS."""

    seconds: float
    command_seconds: float
    server_seconds: float


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    texts = {name: config_text(name) for name in MODELS}
    root = write_project(tmp_path_factory.mktemp("project"), texts, published=MODELS)
    folder = root / ".slipway" / "local"
    folder.mkdir(parents=True)
    stand_in = TESTS / "embedded" / "hosting" / "stand_in.py"
    options = ("--port", "0", "--directory", folder, "--ready-file", folder / "state.json")
    count_start("embedded-aws")
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, stand_in, *options],
            cwd=TESTS.parent,
            stdout=log,
            stderr=log,
        )
    try:
        eventually(lambda: (folder / "state.json").exists())
        deploy(root)
        yield root
    finally:
        process.terminate()
        process.wait(60)


def deploy(root: Path) -> None:
    state = control.running(root)
    assert state is not None

    def client(service: str) -> Any:
        make_client: Any = boto3.client
        return make_client(
            service,
            endpoint_url=state.url,
            region_name=LOCAL.region,
            aws_access_key_id=ACCESS_KEY_ID,
            aws_secret_access_key=state.secret_access_key,
        )

    s3, stacks = client("s3"), client("cloudformation")
    s3.create_bucket(Bucket=LOCAL.artifact_bucket)
    s3.put_object(Bucket=LOCAL.artifact_bucket, Key=f"artifacts/{DIGEST}/files/mode", Body=b"ok")
    topic = client("sns").create_topic(Name="notifications")["TopicArn"]
    for name, value in (
        ("/slipway/local/notification-topic-arn", topic),
        ("/slipway/local/artifact-key-arn", f"arn:aws:kms:us-east-1:{LOCAL.account}:key/x"),
        ("/cdk-bootstrap/hnb659fds/version", "30"),
    ):
        client("ssm").put_parameter(Name=name, Value=value, Type="String")
    for name in MODELS:
        text = golden_template("fixed-count").replace("fixed-count", name)
        # One container each: a list asks for no more of two.
        template = json.loads(
            text.replace('"InitialInstanceCount": 2', '"InitialInstanceCount": 1')
        )
        resources = template["Resources"].items()
        kept = {key: each for key, each in resources if key.startswith(KEPT)}
        for each in kept.values():
            each.pop("DependsOn", None)
        stacks.create_stack(
            StackName=f"{name}-local",
            TemplateBody=json.dumps({**template, "Resources": kept}),
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Tags=model_tags(name),
        )
    for name in MODELS:
        stacks.get_waiter("stack_create_complete").wait(
            StackName=f"{name}-local", WaiterConfig={"Delay": 1}
        )


def test_the_list_of_fifty_models_is_quick(project: Path) -> None:
    trials = [timed_list(project) for _ in range(TRIALS)]
    wall, command, server = (median(column) for column in zip(*trials, strict=True))
    least = min(each.command_seconds + each.server_seconds for each in trials)
    print(
        f"slipway list of {len(MODELS)} models: {wall:.2f} s (least {min(trials).seconds:.2f} s), "
        f"{command:.2f} s of a core for the command and {server:.2f} s for the embedded AWS; "
        f"load {os.getloadavg()[0]:.1f}"
    )
    assert least < MOST_PROCESSOR_SECONDS


def timed_list(project: Path) -> Used:
    state = control.running(project)
    assert state is not None
    count_start("python")
    before, begin = (children(), server_seconds(state.pid)), time.monotonic()
    command = [str(Path(sys.executable).with_name("slipway")), "list", "--env", "local"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    seconds = time.monotonic() - begin
    lines = [line for line in done.stdout.splitlines() if "in service" in line]
    assert (len(lines), done.stderr) == (len(MODELS), "")
    return Used(seconds, children() - before[0], server_seconds(state.pid) - before[1])


def children() -> float:
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def server_seconds(pid: int) -> float:
    """Processor time of one process, and of none that it started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
