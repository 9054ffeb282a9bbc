"""The foundation's life: a creation that fails, and one that is destroyed and deployed again."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.config.environments import Environment
from slipway.stacks.constructs.foundation_guard import FOUNDATION_VERSION, RESOURCE_TYPE
from tests.support.prepared_accounts import publish_packages, synthesised_foundation
from tests.support.projects import LOCAL, PRODUCTION
from tests.support.stacks import Stacks, account_stacks

BUCKETS = {LOCAL.artifact_bucket, f"{LOCAL.artifact_bucket}-logs"}
STACK = "foundation-local"
ASSET_BUCKETS = {
    f"cdk-hnb659fds-assets-{place.account}-{place.region}" for place in (LOCAL, PRODUCTION)
}
# What 0.1.0 deployed for production, without the guard.
RELEASED = Path(__file__).parents[1] / "golden" / "releases" / "0.1.0" / "foundation.json"
# A resource that its service refuses.
BROKEN = {
    "Type": "AWS::KMS::Alias",
    "Properties": {"AliasName": "alias/broken", "TargetKeyId": "missing"},
}
OBJECT = {"Bucket": LOCAL.artifact_bucket, "Key": "artifacts/old/files/model"}


@pytest.fixture
def stacks(tmp_path: Path) -> Iterator[Stacks]:
    with account_stacks(tmp_path) as found:
        for bucket in ASSET_BUCKETS:
            found.client("s3").create_bucket(Bucket=bucket)
        found.client("ssm").put_parameter(
            Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
        )
        yield found


@pytest.fixture
def render(stacks: Stacks, tmp_path: Path) -> Callable[[Environment], dict[str, Any]]:
    """Synthesises the foundation of an environment, and uploads its function as the CLI does."""

    def synthesised(environment: Environment) -> dict[str, Any]:
        assembly = tmp_path / f"cdk.out.{environment.name}"
        artifact = synthesised_foundation(environment, assembly)
        publish_packages(stacks.client, assembly)
        found: dict[str, Any] = artifact.template
        return found

    return synthesised


def bucket_names(stacks: Stacks) -> set[str]:
    """Returns the foundation's buckets that are there."""
    found = stacks.client("s3").list_buckets()["Buckets"]
    return {bucket["Name"] for bucket in found} - ASSET_BUCKETS


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
    broken = {
        **template,
        "Resources": {**template["Resources"], "Bad": {**BROKEN, "DependsOn": everything}},
    }
    assert stacks.create(STACK, broken) == "ROLLBACK_COMPLETE"
    # Their names are free, and no key is left to pay for.
    assert bucket_names(stacks) == set()
    assert usable_keys(stacks) == set()
    stacks.delete(STACK)
    assert stacks.create(STACK, template) == "CREATE_COMPLETE"
    assert bucket_names(stacks) == BUCKETS
    (key_arn,) = usable_keys(stacks)
    return key_arn


def guarded(template: dict[str, Any], **properties: str) -> dict[str, Any]:
    """Returns the template of another project, or of another version of the foundation.

    It has another description of the key, too, which must not be applied where it is refused.
    """
    changed: dict[str, Any] = json.loads(json.dumps(template))
    for resource in changed["Resources"].values():
        if resource["Type"] == RESOURCE_TYPE:
            resource["Properties"] |= properties
        if resource["Type"] == "AWS::KMS::Key":
            resource["Properties"]["Description"] = "changed"
    return changed


def descriptions(stacks: Stacks, key_arn: str) -> str:
    described = stacks.client("kms").describe_key(KeyId=key_arn)["KeyMetadata"]
    return str(described["Description"])


def refusal(stacks: Stacks) -> str:
    (guard,) = {
        event["LogicalResourceId"]
        for event in stacks.events(STACK)
        if event["ResourceType"] == RESOURCE_TYPE
    }
    return stacks.reason(STACK, guard, "UPDATE_FAILED")


def check_refusals(stacks: Stacks, template: dict[str, Any], key_arn: str) -> None:
    """Deploys newer, older and other foundations over this one."""
    before = descriptions(stacks, key_arn)
    newer = guarded(template, Version=str(FOUNDATION_VERSION + 1), Project="search")
    failing = json.loads(json.dumps(newer))
    failing["Resources"]["Bad"] = {**BROKEN, "DependsOn": sorted(template["Resources"])}
    # Its rollback goes back to an older version, and is let through.
    assert stacks.update(STACK, failing) == "UPDATE_ROLLBACK_COMPLETE"
    assert descriptions(stacks, key_arn) == before
    assert stacks.update(STACK, newer) == "UPDATE_COMPLETE"
    assert descriptions(stacks, key_arn) == "changed"
    touched = len(stacks.events(STACK))
    assert stacks.update(STACK, template) == "UPDATE_ROLLBACK_COMPLETE"
    assert "This foundation belongs to the project search, and no project is" in refusal(stacks)
    older = guarded(template, Project="search")
    assert stacks.update(STACK, older) == "UPDATE_ROLLBACK_COMPLETE"
    assert f"Version {FOUNDATION_VERSION + 1} of the foundation is deployed" in refusal(stacks)
    assert descriptions(stacks, key_arn) == "changed"
    # Nothing but the guard was even looked at.
    types = {event["ResourceType"] for event in stacks.events(STACK)[touched:]}
    assert types == {"AWS::CloudFormation::Stack", RESOURCE_TYPE}


def check_log_groups(stacks: Stacks, key_arn: str) -> None:
    """Encrypts a log group with the foundation's key, whose policy has to allow that."""
    group = {"Type": "AWS::Logs::LogGroup", "Properties": {"KmsKeyId": key_arn}}
    assert stacks.create("logs", {"Resources": {"Group": group}}) == "CREATE_COMPLETE"
    assert stacks.delete("logs") == "DELETE_COMPLETE"


def test_a_foundation_is_made_guarded_destroyed_and_made_again_with_its_files_and_key(
    stacks, render, deployed
):
    check_log_groups(stacks, deployed)
    check_refusals(stacks, render(LOCAL), deployed)
    s3 = stacks.client("s3")
    s3.put_object(**OBJECT, Body=b"weights", IfNoneMatch="*")
    assert s3.head_object(**OBJECT)["SSEKMSKeyId"] == deployed
    assert stacks.delete(STACK) == "DELETE_COMPLETE"
    assert bucket_names(stacks) == BUCKETS
    assert usable_keys(stacks) == {deployed}
    # With a new key nobody could read what is there: neither deployment makes one.
    assert stacks.create(STACK, render(LOCAL)) == "ROLLBACK_COMPLETE"
    stacks.delete(STACK)
    assert deploy_importing(stacks, render(LOCAL)) == "ROLLBACK_COMPLETE"
    assert usable_keys(stacks) == {deployed}
    stacks.delete(STACK)
    again = render(LOCAL.model_copy(update={"artifact_key_arn": deployed}))
    assert deploy_importing(stacks, again) == "CREATE_COMPLETE"
    # Every role of a model may decrypt with the key that this parameter names.
    parameter = stacks.client("ssm").get_parameter(Name="/slipway/local/artifact-key-arn")
    assert parameter["Parameter"]["Value"] == deployed
    assert usable_keys(stacks) == {deployed}
    assert s3.get_object(**OBJECT)["Body"].read() == b"weights"
    s3.put_object(
        Bucket=LOCAL.artifact_bucket, Key="artifacts/new", Body=b"weights", IfNoneMatch="*"
    )
    new = s3.head_object(Bucket=LOCAL.artifact_bucket, Key="artifacts/new")
    assert new["SSEKMSKeyId"] == deployed


@pytest.mark.size("all")
def test_a_foundation_from_before_the_guard_takes_it_and_keeps_its_key(stacks, render):
    name = PRODUCTION.stack_name("foundation")
    assert stacks.create(name, RELEASED.read_text("utf-8")) == "CREATE_COMPLETE"
    parameter = {"Name": "/slipway/production/artifact-key-arn"}
    before = stacks.client("ssm").get_parameter(**parameter)["Parameter"]["Value"]
    guarded_template = render(PRODUCTION)
    assert stacks.update(name, guarded_template) == "UPDATE_COMPLETE"
    after = stacks.client("ssm").get_parameter(**parameter)["Parameter"]["Value"]
    assert after == before
    assert before in usable_keys(stacks)
    # From now on an older one is refused.
    older = guarded(guarded_template, Version="0")
    assert stacks.update(name, older) == "UPDATE_ROLLBACK_COMPLETE"
    assert descriptions(stacks, before) != "changed"
