"""Inference components: their copies are processes that share the instances of an endpoint."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.embedded.hosting.conftest import refused
from tests.embedded.hosting.hosted_components import ON_GPU, SMALL, Hosted
from tests.support.accounts import shell_environment
from tests.support.processes import is_running
from tests.support.roles import MAY_USE_OBJECTS, make_role
from tests.support.waiting import eventually

NO_CAPACITY = (
    "Inference Component has no capacity to process this request. ApplicationAutoScaling may be "
    "in-progress (if configured) or try to increase the capacity by invoking "
    "UpdateInferenceComponentRuntimeConfig API."
)
TOO_SMALL = (
    "There is not enough hardware resources on the instances for this endpoint to create a copy of "
    "the inference component."
)


def test_the_copies_of_a_component_are_processes_with_metrics_and_a_log(hosted):
    endpoint = hosted.endpoint()
    assert hosted.instances(endpoint) == 1
    name = hosted.component(endpoint, "mine ", copies=2)
    assert {hosted.invoke(endpoint, name) for _ in range(3)} == {"mine x"}
    with pytest.raises(ClientError, match="ModelError"):
        hosted.invoke(endpoint, name, "error 503 no")
    eventually(lambda: hosted.sum_of(name, "Invocations") == 4)
    assert hosted.sum_of(name, "InvocationsPerCopy") == 2
    assert hosted.sum_of(name, "Invocation5XXErrors") == 1
    assert hosted.sum_of(name, "ModelLatency") > 0
    # They have the component's name alone.
    assert hosted.sum_of(name, "InvocationsPerInstance") is None
    listed = hosted.account.cloudwatch.list_metrics(
        Namespace="AWS/SageMaker", Dimensions=[{"Name": "EndpointName", "Value": endpoint}]
    )
    assert listed["Metrics"] == []
    lines = eventually(lambda: hosted.account.logged(name, "InferenceComponents"))
    assert any(line.startswith("stand-in ok pid") for line in lines)
    answers = Counter(hosted.invoke(endpoint, name, "pid") for _ in range(40))
    # The chance that a copy gets none of 40 requests is one in 10^12.
    assert len(answers) == 2
    described = hosted.settled(name)
    assert described["EndpointName"] == endpoint
    assert described["VariantName"] == "AllTraffic"
    assert described["RuntimeConfig"] == {"DesiredCopyCount": 2, "CurrentCopyCount": 2}
    specification = described["Specification"]
    assert specification["ComputeResourceRequirements"] == SMALL
    image = specification["Container"]["DeployedImage"]["SpecifiedImage"]
    assert image == hosted.account.image
    hosted.delete(name)
    assert refused(hosted.invoke, endpoint, name) == (
        f"Inference Component {name} of endpoint {endpoint} of account 123456789012 not found."
    )
    hosted.account.delete(endpoint)
    assert list((hosted.account.directory / "instances").iterdir()) == []


def test_requests_go_to_the_copy_with_the_fewest_requests(hosted):
    routing = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    endpoint = hosted.endpoint(RoutingConfig=routing)
    name = hosted.component(endpoint, copies=2)
    pids = {hosted.invoke(endpoint, name, "pid") for _ in range(40)}
    assert len(pids) == 2
    with hosted.busy_copy(endpoint, name):
        during = {hosted.invoke(endpoint, name, "pid") for _ in range(10)}
    assert len(during) == 1
    assert during < pids


def test_equal_prefixes_go_to_one_copy(hosted):
    routing = {
        "RoutingStrategy": "PREFIX_AWARE",
        "PrefixAwareRoutingConfig": {"PrefixLength": 1024, "ConcurrencyThreshold": 1},
    }
    endpoint = hosted.endpoint(RoutingConfig=routing, InitialInstanceCount=2)
    name = hosted.component(endpoint, copies=2, size=ON_GPU)
    own = {hosted.invoke(endpoint, name, "pid") for _ in range(10)}
    assert len(own) == 1
    # One program after the other asks: each has an order of its own.
    others = (hosted.invoke(endpoint, name, "pid", PrefixAwareId=str(n)) for n in range(64))
    assert own < set(others)
    # The copy is at the threshold while it answers, and the other one takes the next request.
    with hosted.busy_copy(endpoint, name):
        during = {hosted.invoke(endpoint, name, "pid", PrefixAwareId=str(n)) for n in range(16)}
    assert len(during) == 1


def test_an_instance_keeps_the_model_data_for_its_next_copy(hosted):
    account = hosted.account
    account.put("kept/files/weights.bin", b"weights")
    model = account.model(**account.source("s3://artifacts/kept/files/"))
    endpoint, names = hosted.endpoint(), []
    for is_kept in (True, False):
        specification = {
            "ModelName": model,
            "ComputeResourceRequirements": {"MinMemoryRequiredInMb": 1024},
            "DataCacheConfig": {"EnableCaching": is_kept},
        }
        names.append(hosted.begin(endpoint, specification))
        hosted.settled(names[-1])
    account.s3.delete_object(Bucket="artifacts", Key="kept/files/weights.bin")
    for each in names:
        hosted.scale(each, 2)
    # The copy that downloaded finds nothing any more.
    assert len(list((account.directory / "instances").glob("*/model/weights.bin"))) == 3


def test_several_components_share_an_endpoint(hosted):
    endpoint = hosted.endpoint()
    first = hosted.component(endpoint, "first ")
    second = hosted.component(endpoint, "second ")
    assert hosted.invoke(endpoint, first) == "first x"
    assert hosted.invoke(endpoint, second, TargetVariant="AllTraffic") == "second x"
    assert hosted.instances(endpoint) == 1
    # The instance's memory is full.
    third = hosted.component(endpoint, "third ")
    assert hosted.instances(endpoint) == 2
    listed = hosted.sagemaker.list_inference_components(
        EndpointNameEquals=endpoint, SortBy="Name", SortOrder="Ascending", MaxResults=2
    )
    names = [each["InferenceComponentName"] for each in listed["InferenceComponents"]]
    assert names == sorted([first, second, third])[:2]
    assert listed["NextToken"] == "2"


def test_a_component_without_copies_answers_as_aws_does(hosted):
    endpoint = hosted.endpoint()
    name = hosted.component(endpoint, copies=0)
    assert hosted.copies(name) == (0, 0)
    with pytest.raises(ClientError) as caught:
        hosted.invoke(endpoint, name)
    assert caught.value.response["Error"] == {"Code": "ValidationError", "Message": NO_CAPACITY}
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    eventually(lambda: hosted.sum_of(name, "NoCapacityInvocationFailures") == 1)
    assert hosted.sum_of(name, "Invocations") is None
    assert hosted.scale(name, 1)["RuntimeConfig"]["CurrentCopyCount"] == 1
    assert hosted.invoke(endpoint, name) == "x"
    assert hosted.scale(name, 0)["InferenceComponentStatus"] == "InService"
    with pytest.raises(ClientError, match="has no capacity"):
        hosted.stream(endpoint, name, "x")


def test_a_container_of_the_specification_needs_no_model(hosted):
    hosted.account.put_archive("adapter.tar.gz", {"config.json": b"{}"})
    endpoint = hosted.endpoint()
    container = {
        "Image": hosted.account.image,
        "ArtifactUrl": "s3://artifacts/adapter.tar.gz",
        "Environment": {"MARK": "contained "},
    }
    specification = {"Container": container, "ComputeResourceRequirements": SMALL}
    name = hosted.begin(endpoint, specification)
    described = hosted.settled(name)
    assert described["InferenceComponentStatus"] == "InService", described
    assert described["Specification"]["Container"]["ArtifactUrl"] == container["ArtifactUrl"]
    assert hosted.invoke(endpoint, name) == "contained x"
    assert list(json.loads(hosted.invoke(endpoint, name, "files"))) == ["config.json"]


def test_a_component_whose_container_ends_fails_with_its_last_lines(hosted):
    endpoint = hosted.endpoint()
    name = hosted.begin(endpoint, hosted.specification("dead"))
    described = hosted.settled(name)
    assert described["InferenceComponentStatus"] == "Failed"
    assert described["FailureReason"].startswith(
        f"The primary container for inference component {name} did not pass the ping health check."
    )
    assert "cannot load the model: no such layer" in described["FailureReason"]
    assert described["RuntimeConfig"]["CurrentCopyCount"] == 0
    message = refused(
        hosted.sagemaker.update_inference_component_runtime_config,
        InferenceComponentName=name,
        DesiredRuntimeConfig={"CopyCount": 1},
    )
    assert "in status Failed: it can only be deleted" in message


def test_copies_read_model_data_with_the_role_of_the_configuration(hosted):
    statement = {"Effect": "Deny", "Action": "s3:*", "Resource": "*"}
    nothing = {"Version": "2012-10-17", "Statement": [statement]}
    iam = hosted.account.client("iam")
    role = make_role(iam, f"reads-nothing-{hosted.account.name()}", nothing)
    endpoint = hosted.account.serve(hosted.variant(), ExecutionRoleArn=role)
    name = hosted.begin(endpoint, hosted.specification())
    described = hosted.settled(name)
    assert described["InferenceComponentStatus"] == "Failed"
    reason = described["FailureReason"]
    assert reason.startswith(f"Inference component {name}: ")
    assert "is not authorized to perform: s3:ListBucket" in reason


def test_a_copy_that_does_not_fit_is_not_started(hosted):
    endpoint = hosted.endpoint(
        ManagedInstanceScaling={"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 2}
    )
    large = {"MinMemoryRequiredInMb": 16_385}
    name = hosted.begin(endpoint, hosted.specification(size=large))
    described = hosted.settled(name)
    assert (described["InferenceComponentStatus"], described["FailureReason"]) == (
        "Failed",
        TOO_SMALL,
    )
    hosted.delete(name)
    # One GPU an instance, and two instances at most.
    name = hosted.component(endpoint, size=ON_GPU)
    described = hosted.scale(name, 3)
    assert described["InferenceComponentStatus"] == "InService"
    assert described["FailureReason"] == TOO_SMALL
    assert hosted.copies(name) == (2, 2)
    assert hosted.instances(endpoint) == 2


def test_an_update_replaces_the_copies_and_loses_no_request(hosted):
    endpoint = hosted.endpoint()
    name = hosted.component(endpoint, "old ", copies=2)
    before = hosted.settled(name)["Specification"]["ModelName"]
    # One that fails leaves the old copies.
    hosted.update(name, hosted.specification("dead"))
    described = hosted.settled(name)
    assert described["InferenceComponentStatus"] == "InService"
    assert "cannot load the model: no such layer" in described["FailureReason"]
    assert described["Specification"]["ModelName"] == before
    assert hosted.invoke(endpoint, name) == "old x"
    hosted.update(name, hosted.specification(mark="new "))
    answers = set()
    while hosted.status(name) == "Updating":
        answers.add(hosted.invoke(endpoint, name))
    assert answers <= {"old x", "new x"}
    described = hosted.settled(name)
    assert described["RuntimeConfig"] == {"DesiredCopyCount": 2, "CurrentCopyCount": 2}
    assert "FailureReason" not in described
    assert {hosted.invoke(endpoint, name) for _ in range(10)} == {"new x"}


def update_under_alarm(
    hosted: Hosted, name: str, *, wait_seconds: int = 3600, state: str = "OK", **more: Any
) -> dict[str, Any]:
    """Begins an update that waits after each copy; returns its DeploymentConfig."""
    hosted.account.put_alarm_in(state, f"{name}-errors", InferenceComponentName=name)
    size = {"Type": "COPY_COUNT", "Value": 1}
    config = {
        "RollingUpdatePolicy": {"MaximumBatchSize": size, "WaitIntervalInSeconds": wait_seconds},
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": f"{name}-errors"}]},
    }
    hosted.update(name, hosted.specification(mark="new "), DeploymentConfig=config, **more)
    return config


def undone(hosted: Hosted, name: str) -> dict[str, Any]:
    """The description of the component after its alarm has undone the update."""
    hosted.account.set_alarm("ALARM", f"{name}-errors")
    described = hosted.settled(name)
    assert described["FailureReason"] == (
        f"The update was rolled back because of alarms in state ALARM: {name}-errors."
    )
    return described


def test_an_alarm_undoes_an_update(hosted):
    endpoint = hosted.endpoint()
    name = hosted.component(endpoint, "old ")
    config = update_under_alarm(hosted, name)
    eventually(lambda: hosted.invoke(endpoint, name) == "new x")
    assert undone(hosted, name)["LastDeploymentConfig"] == config
    assert hosted.invoke(endpoint, name) == "old x"


def test_an_alarm_that_the_role_may_not_read_undoes_no_update(hosted):
    account = hosted.account
    may_read_none = json.loads(
        json.dumps(MAY_USE_OBJECTS).replace("cloudwatch:DescribeAlarms", "s3:ListBucket")
    )
    iam = account.client("iam")
    role = make_role(iam, f"blind-{account.name()}", may_read_none)
    endpoint = account.serve(hosted.variant(), ExecutionRoleArn=role)
    name = hosted.component(endpoint, "old ")
    update_under_alarm(hosted, name, wait_seconds=0, state="ALARM")
    assert "FailureReason" not in hosted.settled(name)
    assert hosted.invoke(endpoint, name) == "new x"


def test_an_update_of_a_sleeping_component_answers_with_its_first_copy(hosted):
    endpoint = hosted.endpoint()
    name = hosted.component(endpoint, copies=0)
    update_under_alarm(hosted, name, RuntimeConfig={"CopyCount": 2})

    def is_awake() -> bool:
        try:
            return hosted.invoke(endpoint, name) == "new x"
        except ClientError:
            return False

    eventually(is_awake)
    # With old copies, half of the requests would go to them.
    assert {hosted.invoke(endpoint, name) for _ in range(20)} == {"new x"}
    assert undone(hosted, name)["RuntimeConfig"] == {"DesiredCopyCount": 0, "CurrentCopyCount": 0}


def test_components_outlive_their_endpoint(hosted):
    endpoint = hosted.endpoint()
    name = hosted.component(endpoint)
    pid = int(hosted.invoke(endpoint, name, "pid"))
    hosted.account.delete(endpoint)
    described = hosted.settled(name)
    assert described["InferenceComponentStatus"] == "InService"
    assert described["RuntimeConfig"]["CurrentCopyCount"] == 0
    eventually(lambda: not is_running(pid))


def test_an_update_of_the_endpoint_keeps_its_components(hosted):
    endpoint = hosted.endpoint()
    name = hosted.component(endpoint, copies=2, size=ON_GPU)
    pids = {hosted.invoke(endpoint, name, "pid") for _ in range(40)}
    update = hosted.sagemaker.update_endpoint
    config = hosted.config(hosted.variant(InstanceType="ml.g5.2xlarge"))
    update(EndpointName=endpoint, EndpointConfigName=config)
    assert hosted.account.settled(endpoint)["EndpointConfigName"] == config
    assert hosted.invoke(endpoint, name, "pid") in pids
    # The configuration begins with one instance, and each copy needs a GPU.
    eventually(lambda: hosted.instances(endpoint) == 2)
    renamed = hosted.config(hosted.variant("Renamed"))
    message = refused(update, EndpointName=endpoint, EndpointConfigName=renamed)
    assert 'Variant "AllTraffic" hosts inference components and cannot be removed' in message
    with_model = hosted.account.config(hosted.account.variant(hosted.account.model()))
    message = refused(update, EndpointName=endpoint, EndpointConfigName=with_model)
    assert "does not emulate an update between variants with models and variants" in message


def test_the_aws_cli_makes_and_calls_a_component(hosted, tmp_path):
    endpoint = hosted.endpoint()
    name = hosted.account.name()

    def aws(*arguments: str) -> str:
        program = Path(sys.executable).with_name("aws")
        done = subprocess.run(
            [program, *arguments, "--inference-component-name", name],
            env=shell_environment(hosted.account.clients.connection),
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    aws(
        *("sagemaker", "create-inference-component", "--endpoint-name", endpoint),
        *("--specification", json.dumps(hosted.specification(mark="by hand "))),
        *("--runtime-config", "CopyCount=1"),
    )
    hosted.settled(name)
    answer = tmp_path / "answer"
    aws(
        *("sagemaker-runtime", "invoke-endpoint", "--endpoint-name", endpoint),
        *("--body", "x", str(answer)),
    )
    assert answer.read_text() == "by hand x"
