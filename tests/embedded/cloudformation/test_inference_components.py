"""AWS::SageMaker::InferenceComponent, with real copies."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.embedded.cloudformation import templates
from tests.embedded.cloudformation.templates import get_att, hosting, resource, target
from tests.support.stacks import Stacks
from tests.support.waiting import eventually


def template(mark: str = "one", mode: str = "ok", **component: Any) -> dict[str, Any]:
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
        **component,
    }
    scaled = target(
        "inference-component/zero-component",
        "sagemaker:inference-component:DesiredCopyCount",
        MinCapacity=0,
        MaxCapacity=2,
    )
    return templates.template(
        {"Ref": {"Ref": "Component"}, "Arn": get_att("Component", "InferenceComponentArn")},
        **resources,
        Component=resource("AWS::SageMaker::InferenceComponent", **properties),
        Target={**scaled, "DependsOn": "Component"},
    )


def invoke(stacks: Stacks) -> str:
    answer = stacks.client("sagemaker-runtime").invoke_endpoint(
        EndpointName="zero", InferenceComponentName="zero-component", Body=b"!"
    )
    text: str = answer["Body"].read().decode()
    return text


def described(stacks: Stacks) -> dict[str, Any]:
    found: dict[str, Any] = stacks.client("sagemaker").describe_inference_component(
        InferenceComponentName="zero-component"
    )
    return found


def scaled_to(stacks: Stacks, copies: int) -> None:
    stacks.client("sagemaker").update_inference_component_runtime_config(
        InferenceComponentName="zero-component", DesiredRuntimeConfig={"CopyCount": copies}
    )


def test_the_life_of_a_component(stacks: Stacks) -> None:
    assert stacks.create("zero", template()) == "CREATE_COMPLETE"
    assert invoke(stacks) == "one!"
    arn = "arn:aws:sagemaker:eu-west-1:123456789012:inference-component/zero-component"
    assert stacks.outputs("zero") == {"Ref": arn, "Arn": arn}
    sagemaker = stacks.client("sagemaker")

    # Scaled since: an update of the model leaves the number of copies alone.
    scaled_to(stacks, 0)
    eventually(lambda: described(stacks)["InferenceComponentStatus"] == "InService")
    tags = [{"Key": "slipway:model", "Value": "zero"}]
    assert stacks.update("zero", template("two"), Tags=tags) == "UPDATE_COMPLETE"
    assert described(stacks)["RuntimeConfig"] == {"DesiredCopyCount": 0, "CurrentCopyCount": 0}
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == tags
    scaled_to(stacks, 1)
    eventually(lambda: described(stacks)["InferenceComponentStatus"] == "InService")
    assert invoke(stacks) == "two!"

    # A changed number of copies counts.
    more = template("two", RuntimeConfig={"CopyCount": 2})
    assert stacks.update("zero", more, Tags=tags) == "UPDATE_COMPLETE"
    assert described(stacks)["RuntimeConfig"] == {"DesiredCopyCount": 2, "CurrentCopyCount": 2}

    # A name cannot be changed, and a model that does not start is undone.
    renamed = template("two", InferenceComponentName="other", RuntimeConfig={"CopyCount": 2})
    assert stacks.update("zero", renamed, Tags=tags) == "UPDATE_ROLLBACK_COMPLETE"
    reason = stacks.reason("zero", "Component", "UPDATE_FAILED")
    assert "InferenceComponentName of an inference component cannot be changed" in reason

    assert stacks.delete("zero") == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="Could not find inference component"):
        described(stacks)
    assert sagemaker.list_endpoints()["Endpoints"] == []


def test_a_model_that_does_not_start_is_undone(stacks: Stacks) -> None:
    # One instance is left for the new copy.
    assert stacks.create("zero", template()) == "CREATE_COMPLETE"
    assert stacks.update("zero", template("three", "dead")) == "UPDATE_ROLLBACK_COMPLETE"
    reason = stacks.reason("zero", "Component", "UPDATE_FAILED")
    assert reason.startswith("Resource handler returned message:")
    assert "inference component zero-component did not pass the ping health check" in reason
    assert invoke(stacks) == "one!"

    # Somebody deleted the component.
    sagemaker = stacks.client("sagemaker")
    sagemaker.delete_inference_component(InferenceComponentName="zero-component")
    eventually(lambda: not sagemaker.list_inference_components()["InferenceComponents"])
    assert stacks.update("zero", template("two")) == "UPDATE_ROLLBACK_FAILED"
    reason = stacks.reason("zero", "Component", "UPDATE_FAILED")
    assert "Could not find inference component" in reason
    assert stacks.delete("zero") == "DELETE_COMPLETE"


def test_a_component_that_fails_takes_its_stack_along(stacks: Stacks) -> None:
    assert stacks.create("zero", template(mode="dead")) == "ROLLBACK_COMPLETE"
    reason = stacks.reason("zero", "Component", "CREATE_FAILED")
    assert "cannot load the model: no such layer" in reason
    assert stacks.delete("zero") == "DELETE_COMPLETE"
    assert stacks.client("sagemaker").list_inference_components()["InferenceComponents"] == []
