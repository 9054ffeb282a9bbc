"""A model, its endpoint configuration and its endpoint as a stack, with real serving processes."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.embedded.cloudformation.templates import (
    get_att,
    hosting,
    resource,
    target,
    template,
)
from tests.support.stacks import Stacks
from tests.support.waiting import eventually

AT_ONCE = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0}


@pytest.fixture(scope="module", autouse=True)
def weights(stacks) -> None:
    stacks.make_bucket("weights")
    stacks.client("s3").put_object(Bucket="weights", Key="files/config.json", Body=b"{}")


def endpoint(name: str, mark: str, mode: str = "ok", **more: Any) -> dict[str, Any]:
    """A stack as Slipway's: role, model, configuration, endpoint, scaling and an alarm."""
    source = {"S3Uri": "s3://weights/files/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    model = get_att("Model", "ModelName")
    variant = {"ModelName": model, "ContainerStartupHealthCheckTimeoutInSeconds": 60}
    resources = hosting(name, mark, mode, **variant)
    model = resources["Model"]["Properties"]
    model["ExecutionRoleArn"] = get_att("Role", "Arn")
    model["PrimaryContainer"]["ModelDataSource"] = {"S3DataSource": source}
    resources["Endpoint"]["Properties"] |= {
        "RetainAllVariantProperties": True,
        "ExcludeRetainedVariantProperties": [{"VariantPropertyType": "DesiredWeight"}],
    }
    scaled = target(f"endpoint/{name}/variant/main", MinCapacity=1, MaxCapacity=2)
    return template(
        {
            "Name": get_att("Endpoint", "EndpointName"),
            "Arn": {"Ref": "Endpoint"},
            "Model": {"Ref": "Model"},
        },
        **resources,
        Target={**scaled, "DependsOn": "Endpoint"},
        **more,
    )


def invoke(stacks, name: str, **more: str) -> str:
    runtime = stacks.client("sagemaker-runtime")
    answer = runtime.invoke_endpoint(EndpointName=name, Body=b"!", **more)
    return answer["Body"].read().decode()


def listed(stacks, kind: str) -> set[str]:
    """Names of the models, configurations or endpoints that are there."""
    found = getattr(stacks.client("sagemaker"), f"list_{kind}")()
    (summaries,) = (value for value in found.values() if isinstance(value, list))
    return {value for each in summaries for key, value in each.items() if key.endswith("Name")}


def test_life_of_an_endpoint(stacks):
    kinds = ("models", "endpoint_configs", "endpoints")
    others = {kind: listed(stacks, kind) for kind in kinds}

    def made(kind: str) -> set[str]:
        return listed(stacks, kind) - others[kind]

    assert stacks.create("life", endpoint("life", "one")) == "CREATE_COMPLETE"
    outputs = stacks.outputs("life")
    prefix = "arn:aws:sagemaker:eu-west-1:123456789012"
    assert outputs["Name"] == "life"
    assert outputs["Arn"] == f"{prefix}:endpoint/life"
    assert outputs["Model"].startswith(f"{prefix}:model/model-")
    (model,) = made("models")
    assert model.startswith("Model-")
    assert invoke(stacks, "life") == "one!"

    changed = endpoint("life", "two")
    tags = [{"Key": "slipway:model", "Value": "life"}]
    assert stacks.update("life", changed, Tags=tags) == "UPDATE_COMPLETE"
    assert invoke(stacks, "life") == "two!"
    assert [
        line
        for line in stacks.history("life", since="UPDATE_IN_PROGRESS")
        if "COMPLETE" in line and not line.startswith("Role")
    ] == [
        "Model UPDATE_COMPLETE",
        "Config UPDATE_COMPLETE",
        "Endpoint UPDATE_COMPLETE",
        "Target UPDATE_COMPLETE",
        "* UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "Config DELETE_COMPLETE",
        "Model DELETE_COMPLETE",
        "* UPDATE_COMPLETE",
    ]
    sagemaker = stacks.client("sagemaker")
    assert sagemaker.list_tags(ResourceArn=outputs["Arn"])["Tags"] == tags
    assert len(made("models")) == len(made("endpoint_configs")) == 1

    # Weights that do not start: the stack goes back, and the old ones served all the time.
    broken = endpoint("life", "three", "dead")
    assert stacks.update("life", broken, Tags=tags) == "UPDATE_ROLLBACK_COMPLETE"
    reason = stacks.reason("life", "life", "UPDATE_ROLLBACK_IN_PROGRESS")
    assert reason == "The following resource(s) failed to update: [Endpoint]."
    assert "main" in stacks.reason("life", "Endpoint", "UPDATE_FAILED")
    assert invoke(stacks, "life") == "two!"
    assert len(made("models")) == len(made("endpoint_configs")) == 1

    assert stacks.delete("life") == "DELETE_COMPLETE"
    assert [made(kind) for kind in kinds] == [set(), set(), set()]


def test_tags_alone_move_no_requests(stacks):
    content = endpoint("tagged", "one")
    assert stacks.create("tagged", content) == "CREATE_COMPLETE"
    sagemaker = stacks.client("sagemaker")
    before = sagemaker.describe_endpoint(EndpointName="tagged")
    for value in ("first", "second"):
        tags = [{"Key": "team", "Value": value}]
        assert stacks.update("tagged", content, Tags=tags) == "UPDATE_COMPLETE"
        config = sagemaker.describe_endpoint_config(EndpointConfigName=before["EndpointConfigName"])
        for arn in (before["EndpointArn"], config["EndpointConfigArn"]):
            assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == tags
    after = sagemaker.describe_endpoint(EndpointName="tagged")
    assert after["LastModifiedTime"] == before["LastModifiedTime"]
    assert stacks.delete("tagged") == "DELETE_COMPLETE"


@pytest.mark.parametrize(
    "changed",
    [
        {"RetainAllVariantProperties": False, "ExcludeRetainedVariantProperties": []},
        {"DeploymentConfig": {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": AT_ONCE}}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_an_update_without_another_configuration_is_refused(stacks, changed: dict[str, Any]):
    content = endpoint("same", "one")
    assert stacks.create("same", content) == "CREATE_COMPLETE"
    config = stacks.client("sagemaker").describe_endpoint(EndpointName="same")["EndpointConfigName"]
    content["Resources"]["Endpoint"]["Properties"] |= changed
    assert stacks.update("same", content) == "UPDATE_ROLLBACK_FAILED"
    assert (
        f'Cannot update endpoint with the currently in use endpoint configuration "{config}"'
        in stacks.reason("same", "Endpoint", "UPDATE_FAILED")
    )
    assert invoke(stacks, "same") == "one!"
    assert stacks.delete("same") == "DELETE_COMPLETE"


def test_an_endpoint_that_fails_takes_its_stack_along(stacks):
    assert stacks.create("dead", endpoint("dead", "x", "dead")) == "ROLLBACK_COMPLETE"
    reason = stacks.reason("dead", "Endpoint", "CREATE_FAILED")
    assert reason.startswith("Resource handler returned message:")
    assert "dead" not in listed(stacks, "endpoints")
    assert stacks.delete("dead") == "DELETE_COMPLETE"


def test_later_failure_brings_the_old_endpoint_back(stacks):
    """The endpoint was updated already when something after it fails."""
    assert stacks.create("later", endpoint("later", "old")) == "CREATE_COMPLETE"
    alias = resource("AWS::KMS::Alias", "Endpoint", AliasName="alias/a", TargetKeyId="missing")
    body = endpoint("later", "new", Alias=alias)
    assert stacks.update("later", body) == "UPDATE_ROLLBACK_COMPLETE"
    assert invoke(stacks, "later") == "old!"
    assert stacks.delete("later") == "DELETE_COMPLETE"


def component(mark: str = "one", mode: str = "ok", **changes: Any) -> dict[str, Any]:
    """A stack that scales to zero: the target waits for the component, which waits for the rest."""
    specification = {
        "ModelName": get_att("Model", "ModelName"),
        "ComputeResourceRequirements": {
            "MinMemoryRequiredInMb": "1024",
            "NumberOfAcceleratorDevicesRequired": 1,
        },
    }
    limits = {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 2}
    routing = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    resources = hosting("zero", mark, mode, ManagedInstanceScaling=limits, RoutingConfig=routing)
    resources["Config"]["Properties"]["ExecutionRoleArn"] = get_att("Role", "Arn")
    properties = {
        "InferenceComponentName": "zero-component",
        "EndpointName": get_att("Endpoint", "EndpointName"),
        "VariantName": "main",
        "Specification": specification,
        "RuntimeConfig": {"CopyCount": 1},
        **changes,
    }
    scaled = target(
        "inference-component/zero-component",
        "sagemaker:inference-component:DesiredCopyCount",
        MinCapacity=0,
        MaxCapacity=2,
    )
    return template(
        {"Ref": {"Ref": "Component"}, "Arn": get_att("Component", "InferenceComponentArn")},
        **resources,
        Component=resource("AWS::SageMaker::InferenceComponent", **properties),
        Target={**scaled, "DependsOn": "Component"},
    )


def described(stacks: Stacks) -> dict[str, Any]:
    return stacks.client("sagemaker").describe_inference_component(
        InferenceComponentName="zero-component"
    )


def scaled_to(stacks: Stacks, copies: int) -> None:
    stacks.client("sagemaker").update_inference_component_runtime_config(
        InferenceComponentName="zero-component", DesiredRuntimeConfig={"CopyCount": copies}
    )


def test_the_life_of_a_component(stacks: Stacks) -> None:
    assert stacks.create("zero", component()) == "CREATE_COMPLETE"
    assert invoke(stacks, "zero", InferenceComponentName="zero-component") == "one!"
    arn = "arn:aws:sagemaker:eu-west-1:123456789012:inference-component/zero-component"
    assert stacks.outputs("zero") == {"Ref": arn, "Arn": arn}
    sagemaker = stacks.client("sagemaker")

    # Scaled since: an update of the model leaves the number of copies alone.
    scaled_to(stacks, 0)
    eventually(lambda: described(stacks)["InferenceComponentStatus"] == "InService")
    tags = [{"Key": "slipway:model", "Value": "zero"}]
    assert stacks.update("zero", component("two"), Tags=tags) == "UPDATE_COMPLETE"
    assert described(stacks)["RuntimeConfig"] == {"DesiredCopyCount": 0, "CurrentCopyCount": 0}
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == tags
    scaled_to(stacks, 1)
    eventually(lambda: described(stacks)["InferenceComponentStatus"] == "InService")
    assert invoke(stacks, "zero", InferenceComponentName="zero-component") == "two!"

    # A changed number of copies counts.
    more = component("two", RuntimeConfig={"CopyCount": 2})
    assert stacks.update("zero", more, Tags=tags) == "UPDATE_COMPLETE"
    assert described(stacks)["RuntimeConfig"] == {"DesiredCopyCount": 2, "CurrentCopyCount": 2}

    # A name cannot be changed, and a model that does not start is undone.
    renamed = component("two", InferenceComponentName="other", RuntimeConfig={"CopyCount": 2})
    assert stacks.update("zero", renamed, Tags=tags) == "UPDATE_ROLLBACK_COMPLETE"
    reason = stacks.reason("zero", "Component", "UPDATE_FAILED")
    assert "InferenceComponentName of an inference component cannot be changed" in reason

    assert stacks.delete("zero") == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="Could not find inference component"):
        described(stacks)
    assert sagemaker.list_endpoints()["Endpoints"] == []


def test_a_model_that_does_not_start_is_undone(stacks: Stacks) -> None:
    # One instance is left for the new copy.
    assert stacks.create("zero", component()) == "CREATE_COMPLETE"
    assert stacks.update("zero", component("three", "dead")) == "UPDATE_ROLLBACK_COMPLETE"
    reason = stacks.reason("zero", "Component", "UPDATE_FAILED")
    assert reason.startswith("Resource handler returned message:")
    assert "inference component zero-component did not pass the ping health check" in reason
    assert invoke(stacks, "zero", InferenceComponentName="zero-component") == "one!"

    # Somebody deleted the component.
    sagemaker = stacks.client("sagemaker")
    sagemaker.delete_inference_component(InferenceComponentName="zero-component")
    eventually(lambda: not sagemaker.list_inference_components()["InferenceComponents"])
    assert stacks.update("zero", component("two")) == "UPDATE_ROLLBACK_FAILED"
    reason = stacks.reason("zero", "Component", "UPDATE_FAILED")
    assert "Could not find inference component" in reason
    assert stacks.delete("zero") == "DELETE_COMPLETE"


def test_a_component_that_fails_takes_its_stack_along(stacks: Stacks) -> None:
    assert stacks.create("zero", component(mode="dead")) == "ROLLBACK_COMPLETE"
    reason = stacks.reason("zero", "Component", "CREATE_FAILED")
    assert "cannot load the model: no such layer" in reason
    assert stacks.delete("zero") == "DELETE_COMPLETE"
    assert stacks.client("sagemaker").list_inference_components()["InferenceComponents"] == []


@pytest.mark.size("all")
def test_a_stack_that_is_being_created_can_be_deleted(stacks):
    """The last test here: its stack is not gone when it ends."""
    stacks.start_create("abandoned", endpoint("abandoned", "x", "unready"))
    stack_id = stacks.describe("abandoned")["StackId"]
    stacks.await_event("abandoned", "Endpoint", "CREATE_IN_PROGRESS")
    sagemaker = stacks.client("sagemaker")
    stacks.api.delete_stack(StackName="abandoned")
    # SageMaker deletes no endpoint that it is still creating, so neither does the stack.
    assert stacks.describe(stack_id)["StackStatus"] == "DELETE_IN_PROGRESS"
    assert sagemaker.describe_endpoint(EndpointName="abandoned")["EndpointStatus"] == "Creating"
