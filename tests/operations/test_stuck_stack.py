"""A stack whose rollback failed: its cause, and the way out."""

from pathlib import Path
from typing import Any

from slipway.embedded_aws.clients import LoopbackClients
from slipway.operations.deployment import find_deployment, find_obstacle, told
from slipway.operations.leftovers import Leftover, find_leftovers
from slipway.operations.status import find_status
from tests.support.accounts import access_to, embedded_aws
from tests.support.projects import LOCAL
from tests.support.stacks import Stacks

NAME = "tiny-local"
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
    with embedded_aws(tmp_path) as server:
        access = access_to(server.connection.url)
        clients = LoopbackClients(server.connection)
        stacks = Stacks(server, clients, LOCAL.region)
        sns, api = stacks.client("sns"), access.client("cloudformation")
        topics = [sns.create_topic(Name=name)["TopicArn"] for name in ("first", "second")]
        stacks.create(NAME, {"Resources": {"Policy": policy(topics[0])}})
        sns.delete_topic(TopicArn=topics[0])
        stacks.update(NAME, {"Resources": {"Policy": policy(topics[1]), "Bad": BAD}})
        # The rollback is tried again in vain: its first try is over.
        stacks.api.continue_update_rollback(StackName=NAME)
        assert stacks.settled(NAME) == "UPDATE_ROLLBACK_FAILED"

        stuck = find_deployment(api, NAME)
        assert stuck is not None
        assert names(stuck.failures) == ["Policy", "Bad"]
        obstacle = find_obstacle(NAME, stuck, has_endpoint=None, gone=None)
        assert obstacle is not None
        way_out = told(obstacle)
        assert way_out == (
            "the rollback failed, and nothing can be deployed before it is finished. Remove the "
            "cause, then run `aws cloudformation continue-update-rollback --stack-name "
            "tiny-local`. If that is not possible, add `--resources-to-skip Policy`, which leaves "
            "the resource as it is [SW709]"
        )
        troubles = find_status(NAME, access, plan=None, log_line_count=0).troubles()
        assert troubles[1:] == [
            "the last deployment failed: the stack is UPDATE_ROLLBACK_FAILED",
            *stuck.failures,
            way_out,
        ]
        assert find_leftovers("tiny", LOCAL, access) == [
            Leftover("stack", NAME, f"UPDATE_ROLLBACK_FAILED: {way_out}")
        ]

        stacks.api.continue_update_rollback(StackName=NAME, ResourcesToSkip=list(stuck.stuck))
        assert stacks.settled(NAME) == "UPDATE_ROLLBACK_COMPLETE"
        undone = find_deployment(api, NAME)
        assert undone is not None
        assert names(undone.failures) == ["Bad"]
        assert find_obstacle(NAME, undone, has_endpoint=None, gone=None) is None
        clients.close()
