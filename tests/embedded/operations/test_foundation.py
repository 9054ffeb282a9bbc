"""The foundation's life: a creation that fails, and one that is destroyed and deployed again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from embedded_aws.clients import LoopbackClients
from slipway.config.environments import Environment
from stacks.foundation_stack import FoundationStack
from tests.support.accounts import embedded_aws
from tests.support.projects import LOCAL
from tests.support.stacks import Stacks

BUCKETS = {LOCAL.artifact_bucket, f"{LOCAL.artifact_bucket}-logs"}
STACK = "foundation-local"
OBJECT = {"Bucket": LOCAL.artifact_bucket, "Key": "artifacts/old/files/model"}


@pytest.fixture(scope="module")
def render() -> Callable[[Environment], dict[str, Any]]:
    """Synthesises the foundation of an environment."""

    def synthesised(environment: Environment) -> dict[str, Any]:
        app = cdk.App(analytics_reporting=False, builtin_cloud_formation_validation=False)
        target = cdk.Environment(account=environment.account, region=environment.region)
        stack = FoundationStack(app, "foundation", environment=environment, env=target)
        found: dict[str, Any] = app.synth().get_stack_artifact(stack.artifact_id).template
        return found

    return synthesised


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stacks]:
    directory: Path = tmp_path_factory.mktemp("embedded-aws")
    with embedded_aws(directory) as server:
        clients = LoopbackClients(server.url)
        found = Stacks(server, clients, LOCAL.region)
        found.client("ssm").put_parameter(
            Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
        )
        yield found
        clients.close()


def bucket_names(stacks: Stacks) -> set[str]:
    return {bucket["Name"] for bucket in stacks.client("s3").list_buckets()["Buckets"]}


def usable_keys(stacks: Stacks) -> set[str]:
    kms = stacks.client("kms")
    described = [kms.describe_key(KeyId=key["KeyId"]) for key in kms.list_keys()["Keys"]]
    return {
        found["KeyMetadata"]["Arn"]
        for found in described
        if found["KeyMetadata"]["KeyState"] == "Enabled"
        and found["KeyMetadata"]["KeyManager"] == "CUSTOMER"
    }


def deploy_importing(stacks: Stacks, template: dict[str, Any]) -> str:
    """What `cdk deploy foundation --import-existing-resources` does."""
    stacks.api.create_change_set(
        StackName=STACK,
        ChangeSetName="import",
        ChangeSetType="CREATE",
        TemplateBody=json.dumps(template),
        ImportExistingResources=True,
        Capabilities=["CAPABILITY_IAM"],
    )
    stacks.api.execute_change_set(StackName=STACK, ChangeSetName="import")
    return stacks.settled(STACK)


@pytest.fixture
def deployed(stacks: Stacks, render: Callable[[Environment], dict[str, Any]]) -> str:
    """A foundation whose first creation failed; returns its key."""
    template = render(LOCAL)
    everything = sorted(template["Resources"])
    bad = {
        "Type": "AWS::KMS::Alias",
        "Properties": {"AliasName": "alias/broken", "TargetKeyId": "missing"},
        "DependsOn": everything,
    }
    broken = {**template, "Resources": {**template["Resources"], "Bad": bad}}
    assert stacks.create(STACK, broken) == "ROLLBACK_COMPLETE"
    # Their names are free, and no key is left to pay for.
    assert bucket_names(stacks) == set()
    assert usable_keys(stacks) == set()
    stacks.delete(STACK)
    assert stacks.create(STACK, template) == "CREATE_COMPLETE"
    assert bucket_names(stacks) == BUCKETS
    (key_arn,) = usable_keys(stacks)
    return key_arn


def test_a_failed_creation_leaves_nothing_and_a_destroyed_foundation_its_files_and_key(
    stacks, render, deployed
):
    s3 = stacks.client("s3")
    s3.put_object(**OBJECT, Body=b"weights")
    assert s3.head_object(**OBJECT)["SSEKMSKeyId"] == deployed
    assert stacks.delete(STACK) == "DELETE_COMPLETE"
    assert bucket_names(stacks) == BUCKETS
    assert usable_keys(stacks) == {deployed}
    again = render(LOCAL.model_copy(update={"artifact_key_arn": deployed}))
    assert deploy_importing(stacks, again) == "CREATE_COMPLETE"
    # Every role of a model may decrypt with the key that this parameter names.
    parameter = stacks.client("ssm").get_parameter(Name="/slipway/local/artifact-key-arn")
    assert parameter["Parameter"]["Value"] == deployed
    assert usable_keys(stacks) == {deployed}
    assert s3.get_object(**OBJECT)["Body"].read() == b"weights"
    s3.put_object(Bucket=LOCAL.artifact_bucket, Key="artifacts/new", Body=b"weights")
    new = s3.head_object(Bucket=LOCAL.artifact_bucket, Key="artifacts/new")
    assert new["SSEKMSKeyId"] == deployed
