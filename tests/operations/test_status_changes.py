"""`slipway status` after a deployment was changed. Each test has an account of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.operations.deployment import find_deployment, find_obstacle, told
from slipway.operations.leftovers import Leftover, find_leftovers
from slipway.operations.status import Status, find_status
from tests.support.projects import LOCAL
from tests.support.slipway_stack import MODEL, NAME, SlipwayStack, slipway_stack
from tests.support.upgrades import with_another_type


@pytest.fixture
def own(tmp_path: Path) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path, time_scale=0.005) as stack:
        assert stack.create("ok") == "CREATE_COMPLETE"
        yield stack


def seen(stack: SlipwayStack, log_line_count: int = 0) -> Status:
    return find_status(NAME, stack.access, plan=None, log_line_count=log_line_count)


@pytest.mark.size("all")
def test_other_instances_are_one_deployment(own: SlipwayStack) -> None:
    changed = with_another_type(own.template("ok"))
    assert own.stacks.update(NAME, changed) == "UPDATE_COMPLETE"
    status = seen(own)
    assert status.endpoint is not None
    (variant,) = status.endpoint.variants
    assert variant.instance_types == ("ml.g4dn.2xlarge",)
    assert (variant.min_instance_count, variant.max_instance_count) == (2, 6)


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


def deleted(what: str) -> str:
    return (
        f"its {what} was deleted, so that updates of the endpoint and new instances can fail. "
        "Make it again under this name, or destroy the stack and deploy it [SW719]"
    )


def test_a_deleted_endpoint_config_can_be_made_again(own: SlipwayStack) -> None:
    sagemaker = own.stacks.client("sagemaker")
    name = sagemaker.describe_endpoint(EndpointName=NAME)["EndpointConfigName"]
    config = sagemaker.describe_endpoint_config(EndpointConfigName=name)
    sagemaker.delete_endpoint_config(EndpointConfigName=name)
    assert seen(own).troubles() == [deleted(f"endpoint config {name}")]
    # SageMaker refuses the next update, and nothing else is wrong with it.
    assert own.update("slow") == "UPDATE_ROLLBACK_COMPLETE"
    sagemaker.create_endpoint_config(
        EndpointConfigName=name, ProductionVariants=config["ProductionVariants"]
    )
    assert own.update("slow") == "UPDATE_COMPLETE"
    assert seen(own).troubles() == []

    (variant,) = sagemaker.describe_endpoint_config(
        EndpointConfigName=sagemaker.describe_endpoint(EndpointName=NAME)["EndpointConfigName"]
    )["ProductionVariants"]
    sagemaker.delete_model(ModelName=variant["ModelName"])
    assert seen(own).troubles() == [deleted(f"model {variant['ModelName']}")]


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
    assert bare.troubles() == [*after.troubles(), deleted("endpoint config ByHand")]
    sagemaker.delete_endpoint(EndpointName=NAME)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=NAME, WaiterConfig={"Delay": 1})
    gone = seen(own)
    assert gone.troubles() == [
        "there is no endpoint: nothing is served",
        f"the endpoint {NAME} was deleted, and an update of its stack fails. Destroy the stack and "
        "deploy it [SW726]",
    ]


STUCK = "tiny-local"
BAD = {
    "Type": "AWS::KMS::Alias",
    "Properties": {"AliasName": "alias/bad", "TargetKeyId": "missing"},
    "DependsOn": "Policy",
}


def policy(topic: str) -> dict[str, Any]:
    document = {"Version": "2012-10-17", "Statement": []}
    properties = {"Topics": [topic], "PolicyDocument": document}
    return {"Type": "AWS::SNS::TopicPolicy", "Properties": properties}


def names(failures: tuple[str, ...]) -> list[str]:
    return [failure.partition(":")[0] for failure in failures]


def test_a_failed_rollback_names_its_cause_and_the_resource_to_skip(tmp_path: Path) -> None:
    with slipway_stack(tmp_path, time_scale=0.005) as stack:
        stacks, access = stack.stacks, stack.access
        sns, api = stacks.client("sns"), access.client("cloudformation")
        topics = [sns.create_topic(Name=name)["TopicArn"] for name in ("first", "second")]
        stacks.create(STUCK, {"Resources": {"Policy": policy(topics[0])}})
        sns.delete_topic(TopicArn=topics[0])
        stacks.update(STUCK, {"Resources": {"Policy": policy(topics[1]), "Bad": BAD}})
        # The rollback is tried again in vain: its first try is over.
        stacks.api.continue_update_rollback(StackName=STUCK)
        assert stacks.settled(STUCK) == "UPDATE_ROLLBACK_FAILED"

        stuck = find_deployment(api, STUCK)
        assert stuck is not None
        assert names(stuck.failures) == ["Policy", "Bad"]
        obstacle = find_obstacle(STUCK, stuck, has_endpoint=None, gone=None)
        assert obstacle is not None
        way_out = told(obstacle)
        assert way_out == (
            "the rollback failed, and nothing can be deployed before it is finished. Remove the "
            "cause, then run `aws cloudformation continue-update-rollback --stack-name "
            "tiny-local`. If that is not possible, add `--resources-to-skip Policy`, which leaves "
            "the resource as it is [SW709]"
        )
        troubles = find_status(STUCK, access, plan=None, log_line_count=0).troubles()
        assert troubles[1:] == [
            "the last deployment failed: the stack is UPDATE_ROLLBACK_FAILED",
            *stuck.failures,
            way_out,
        ]
        assert find_leftovers("tiny", LOCAL, access) == [
            Leftover("stack", STUCK, f"UPDATE_ROLLBACK_FAILED: {way_out}")
        ]

        stacks.api.continue_update_rollback(StackName=STUCK, ResourcesToSkip=list(stuck.stuck))
        assert stacks.settled(STUCK) == "UPDATE_ROLLBACK_COMPLETE"
        undone = find_deployment(api, STUCK)
        assert undone is not None
        assert names(undone.failures) == ["Bad"]
        assert find_obstacle(STUCK, undone, has_endpoint=None, gone=None) is None
