"""`slipway status` after a deployment was changed. Each test has an account of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.operations.leftovers import Leftover, find_leftovers
from slipway.operations.status import Status, find_status
from tests.support.projects import LOCAL
from tests.support.slipway_stack import MODEL, NAME, SlipwayStack, slipway_stack


@pytest.fixture
def own(tmp_path: Path) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path, time_scale=0.005) as stack:
        assert stack.create("ok") == "CREATE_COMPLETE"
        yield stack


def seen(stack: SlipwayStack, log_line_count: int = 0) -> Status:
    return find_status(NAME, stack.access, plan=None, log_line_count=log_line_count)


def test_a_failed_creation_leaves_the_end_of_its_log(tmp_path: Path) -> None:
    kept = Leftover("log group", f"/slipway/failed-deployments/{NAME}")
    with slipway_stack(tmp_path, time_scale=0.005) as stack:
        ssm, logs = stack.stacks.client("ssm"), stack.stacks.client("logs")
        key = ssm.get_parameter(Name="/slipway/local/artifact-key-arn")["Parameter"]["Value"]
        template = stack.template("dead")
        template["Resources"]["HostingLogGroup94C30121"]["Properties"]["KmsKeyId"] = key
        assert stack.stacks.create(NAME, template) == "ROLLBACK_COMPLETE"
        status = seen(stack, 1)
        assert [line.text for line in status.log_lines] == ["cannot load the model: no such layer"]
        assert status.log_group == kept.name
        (group,) = logs.describe_log_groups(logGroupNamePrefix=kept.name)["logGroups"]
        assert (group["retentionInDays"], group["kmsKeyId"]) == (14, key)

        # It is in nobody's way, and goes with the stack that comes next.
        assert stack.delete() == "DELETE_COMPLETE"
        assert find_leftovers(MODEL, LOCAL, stack.access) == [kept]
        assert stack.create("ok") == "CREATE_COMPLETE"
        serving = seen(stack, 1)
        assert serving.log_group == f"/aws/sagemaker/Endpoints/{NAME}"
        assert stack.delete() == "DELETE_COMPLETE"
        assert find_leftovers(MODEL, LOCAL, stack.access) == []


def test_the_reason_of_an_earlier_deployment_is_over(own: SlipwayStack) -> None:
    assert own.update("dead") == "UPDATE_ROLLBACK_COMPLETE"
    failed = seen(own)
    assert len(failed.troubles()) == 2
    # SageMaker keeps its reason until the endpoint changes again.
    calmer = own.template("ok", alarm_periods=7)
    assert own.stacks.update(NAME, calmer) == "UPDATE_COMPLETE"
    done = seen(own)
    assert done.endpoint is not None
    assert "did not pass the ping" in str(done.endpoint.failure_reason)
    assert done.troubles() == []

    sagemaker = own.stacks.client("sagemaker")
    (config,) = sagemaker.list_endpoint_configs()["EndpointConfigs"]
    described = sagemaker.describe_endpoint_config(EndpointConfigName=config["EndpointConfigName"])
    model = described["ProductionVariants"][0]["ModelName"]
    sagemaker.delete_model(ModelName=model)
    assert seen(own).troubles() == [
        f"its model {model} was deleted, so that updates of the endpoint and new instances can "
        "fail. Make it again under this name, or destroy the stack and deploy it [SW719]"
    ]


def test_an_update_past_the_stack_shows(own: SlipwayStack) -> None:
    before = seen(own)
    assert before.declared is not None
    sagemaker = own.stacks.client("sagemaker")
    config = sagemaker.describe_endpoint_config(EndpointConfigName=before.declared.config)
    sagemaker.create_endpoint_config(
        EndpointConfigName="ByHand", ProductionVariants=config["ProductionVariants"]
    )
    sagemaker.update_endpoint(EndpointName=NAME, EndpointConfigName="ByHand")
    changing = seen(own)
    assert changing.in_progress
    assert changing.troubles() == []
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=NAME, WaiterConfig={"Delay": 1})
    after = seen(own)
    assert after.troubles() == [
        f"it serves ByHand, not the {before.declared.config} that its stack declares: "
        "a silent rollback, or a change by hand"
    ]
    assert after.declared == before.declared

    # The configuration can be deleted under the endpoint.
    sagemaker.delete_endpoint_config(EndpointConfigName="ByHand")
    bare = seen(own)
    assert bare.endpoint is not None
    assert (bare.endpoint.served.image, bare.endpoint.served.artifact) == (None, None)
    assert bare.troubles() == [
        *after.troubles(),
        "its endpoint config ByHand was deleted, so that updates of the endpoint and new instances "
        "can fail. Make it again under this name, or destroy the stack and deploy it [SW719]",
    ]
    sagemaker.delete_endpoint(EndpointName=NAME)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=NAME, WaiterConfig={"Delay": 1})
    gone = seen(own)
    assert gone.troubles() == [
        "there is no endpoint: nothing is served",
        f"the endpoint {NAME} was deleted, and an update of its stack fails. Destroy the stack and "
        "deploy it [SW726]",
    ]
