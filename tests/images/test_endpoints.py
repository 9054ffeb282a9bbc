"""An endpoint of the embedded AWS in its image: `slipway local start --containers`."""

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from slipway.embedded_aws import control
from slipway.embedded_aws.containers.engine import Engine
from slipway.embedded_aws.identity import ACCESS_KEY_ID
from slipway.project import Project
from tests.images.families import FAMILIES
from tests.support.clients import Clients
from tests.support.served_sample import ENDPOINT, STACK, await_serving, deploy
from tests.support.waiting import eventually
from tests.support.workbench import MODEL, Workbench
from tools.images.build import build
from tools.images.catalogue import catalogue

pytestmark = [
    pytest.mark.images,
    pytest.mark.timeout(900),
]

LOG_GROUP = f"/aws/sagemaker/Endpoints/{ENDPOINT}"


@pytest.fixture(scope="module")
def bench(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """An embedded AWS with the sample in its image, built from the present sources."""
    with Workbench(tmp_path_factory.mktemp("project"), containers=True) as bench:
        tag = image_of(bench).rpartition(":")[2]
        (image,) = (
            each
            for each in catalogue()
            if each.family == "tensorrt" and tag.startswith(f"{each.base_tag}-")
        )
        build(engine, image, lambda _: None, may_pull=False)
        deploy(bench)
        await_serving(bench)
        yield bench


def image_of(bench: Workbench) -> str:
    """The address that the sample's template names."""
    project = Project(bench.project)
    return project.plan(MODEL, project.environment("local")).image.uri


def owner(bench: Workbench) -> str:
    """The label of the containers of one embedded AWS."""
    return f"slipway.embedded-aws={bench.project.resolve()}/.slipway/local"


def containers(engine: Engine, bench: Workbench, *options: str) -> list[str]:
    return engine.answer("ps", "--quiet", f"--filter=label={owner(bench)}", *options).split()


def log_lines(bench: Workbench) -> list[str]:
    events = bench.client("logs").filter_log_events(logGroupName=LOG_GROUP)["events"]
    return [event["message"] for event in events]


def kill(bench: Workbench) -> None:
    os.kill(bench.state.pid, signal.SIGKILL)
    eventually(lambda: control.ended_unasked(bench.project))


def begin_endpoint(bench: Workbench, name: str, image: str) -> None:
    """Begins to create an endpoint of another image, without model data."""
    sagemaker = bench.client("sagemaker")
    sagemaker.create_model(ModelName=name, PrimaryContainer={"Image": image})
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": name,
        "InstanceType": "ml.g4dn.xlarge",
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)


def test_it_answers_as_the_process_does(bench: Workbench, tmp_path: Path) -> None:
    family = FAMILIES["tensorrt"]
    assert bench.ask(ENDPOINT, json.loads(family.request)) == family.expected(tmp_path)
    # One JSON line a record, in CloudWatch Logs as on the container's output.
    assert "model_loaded" in [json.loads(line)["event"] for line in log_lines(bench)]


def test_it_has_a_loopback_a_read_only_root_and_no_rights(bench: Workbench, engine: Engine) -> None:
    (container,) = containers(engine, bench)
    (found,) = json.loads(engine.answer("inspect", container))
    host = found["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert found["Config"]["User"] == "1000:1000"
    (model,) = (each for each in found["Mounts"] if each["Destination"] == "/opt/ml/model")
    assert model["RW"] is False
    variables = dict(each.split("=", 1) for each in found["Config"]["Env"])
    assert variables["SAGEMAKER_BIND_TO_PORT"] == "8080"
    assert variables["SAGEMAKER_REGION"] == variables["AWS_REGION"] == "us-east-1"
    assert not {name for name in variables if name.startswith(("AWS_ACC", "AWS_END"))}

    def inside(code: str) -> str:
        python = ("/opt/slipway/venv/bin/python3", "-I", "-c", code)
        return engine.answer("exec", container, *python)

    assert inside("import socket; print(*(n for _, n in socket.if_nameindex()))") == "lo"
    rights = "print(*(l.split()[1] for l in open('/proc/self/status') if l.startswith('CapBnd')))"
    assert int(inside(rights), 16) == 0


def test_status_and_start_say_it(bench: Workbench, engine: Engine) -> None:
    said = f"Endpoints run in their images. The engine is {engine.name}.\n"
    assert said in bench.must("slipway", "local", "status")
    status = json.loads(bench.must("slipway", "local", "status", "--json"))
    assert status["engine"] == engine.name
    assert said in bench.must("slipway", "local", "start")


def test_a_killed_container_is_replaced(bench: Workbench, engine: Engine) -> None:
    make_client: Any = boto3.client
    runtime = make_client(
        "sagemaker-runtime",
        endpoint_url=bench.state.url,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=bench.state.secret_access_key,
        config=Config(retries={"total_max_attempts": 1}),
    )
    body = FAMILIES["tensorrt"].request

    def ask() -> str:
        try:
            runtime.invoke_endpoint(
                EndpointName=ENDPOINT, ContentType="application/json", Body=body
            )
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return "answered"

    with Clients(ask) as clients:
        answers = clients.answers
        eventually(lambda: answers["answered"])
        (killed,) = containers(engine, bench)
        engine.answer("kill", killed)
        eventually(lambda: answers["ServiceUnavailable"])
        before = answers["answered"]
        eventually(lambda: answers["answered"] > before)
    # Each request was answered, or failed as one that SageMaker could not deliver.
    assert set(answers) <= {"answered", "InternalFailure", "ServiceUnavailable"}
    (replacement,) = containers(engine, bench)
    assert replacement != killed
    restarted = "The container exited with status 137; it is restarted."
    eventually(lambda: restarted in log_lines(bench))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda image: f"{image.rpartition('-')[0]}-0123456789abcdef",
            "The image slipway-tried/tensorrt:{base} was built from the sources {sources}. The "
            "deployment names the sources 0123456789abcdef. Run `make images`, then deploy again.",
        ),
        (
            lambda image: image.replace(":trt", ":trt99."),
            "The engine ({engine}) has no image slipway-tried/tensorrt:trt99.{version}. Run `make "
            "images`, then deploy again.",
        ),
        (
            lambda image: image.partition("/")[0] + "/djl-inference:0.27.0-deepspeed0.12.6-cu121",
            "With `--containers` the embedded AWS runs only images that Slipway builds, and not "
            "{registry}/djl-inference:0.27.0-deepspeed0.12.6-cu121. Known repositories: "
            "slipway/neuron, slipway/tensorrt, slipway/triton. Start it without `--containers` to "
            "run programs as processes.",
        ),
    ],
    ids=["other-sources", "missing", "not-slipways"],
)
def test_an_image_that_is_not_there_fails_the_endpoint(
    bench: Workbench, engine: Engine, change: Any, reason: str
) -> None:
    image = image_of(bench)
    base, _, sources = image.rpartition(":")[2].rpartition("-")
    begin_endpoint(bench, "other", change(image))
    sagemaker = bench.client("sagemaker")
    try:
        found = eventually(
            lambda: (
                described
                if (described := sagemaker.describe_endpoint(EndpointName="other"))[
                    "EndpointStatus"
                ]
                == "Failed"
                else None
            )
        )
        assert found["FailureReason"] == reason.format(
            base=base,
            version=base.removeprefix("trt"),
            sources=sources,
            engine=engine.name,
            registry=image.partition("/")[0],
        )
    finally:
        sagemaker.delete_endpoint(EndpointName="other")
        sagemaker.delete_endpoint_config(EndpointConfigName="other")
        sagemaker.delete_model(ModelName="other")


def test_its_machine_is_measured(bench: Workbench) -> None:
    now = datetime.now(UTC)

    def greatest(name: str) -> float:
        data = bench.client("cloudwatch").get_metric_statistics(
            Namespace="/aws/sagemaker/Endpoints",
            MetricName=name,
            Dimensions=[
                {"Name": "EndpointName", "Value": ENDPOINT},
                {"Name": "VariantName", "Value": "AllTraffic"},
            ],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(hours=1),
            Period=60,
            Statistics=["Maximum"],
        )["Datapoints"]
        return max((each["Maximum"] for each in data), default=0.0)

    # The processes of the container, and not the client of the engine.
    eventually(lambda: greatest("MemoryUtilization"))
    eventually(lambda: greatest("CPUUtilization"))


def test_no_container_outlives_its_endpoint_or_the_embedded_aws(
    bench: Workbench, engine: Engine
) -> None:
    assert containers(engine, bench)
    bench.client("cloudformation").delete_stack(StackName=STACK)
    eventually(lambda: bench.stack_status(STACK) is None)
    assert containers(engine, bench, "--all") == []
    assert '"event": "stopped", "exit_code": 0' in log_lines(bench)[-1]

    deploy(bench)
    await_serving(bench)
    # As a container whose supervisor was killed, too.
    image = f"slipway-tried/tensorrt:{image_of(bench).rpartition(':')[2].rpartition('-')[0]}"
    options = ("--detach", "--network=none", f"--label={owner(bench)}", "--entrypoint=sleep")
    left = engine.answer("run", *options, image, "600")
    kill(bench)
    eventually(lambda: containers(engine, bench, "--all", "--no-trunc") == [left])
    bench.start()
    assert containers(engine, bench, "--all") == []
    assert bench.client("sagemaker").list_endpoints()["Endpoints"] == []

    deploy(bench)
    await_serving(bench)
    assert bench.must("slipway", "local", "stop").startswith("Stopped; ")
    assert containers(engine, bench, "--all") == []
