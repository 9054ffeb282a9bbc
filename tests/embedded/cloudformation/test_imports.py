"""A change set that imports what exists under the names in its template."""

from typing import Any

import pytest

from tests.embedded.cloudformation.templates import resource, template

TAGGING = "Apply stack-level tags to imported resource if applicable."


def bucket(name: Any, policy: str = "RetainExceptOnCreate", **properties: Any) -> dict[str, Any]:
    body = resource("AWS::S3::Bucket", BucketName=name, **properties)
    return {**body, "DeletionPolicy": policy}


def propose(stacks, name: str, body: dict[str, Any], kind: str = "CREATE") -> dict[str, str]:
    """Makes a change set that imports; returns what it will do to each resource."""
    tags = [{"Key": "team", "Value": "search"}]
    found = stacks.propose(name, body, kind, ImportExistingResources=True, Tags=tags)
    assert found["ImportExistingResources"] is True
    changes = [change["ResourceChange"] for change in found["Changes"]]
    return {change["LogicalResourceId"]: change["Action"] for change in changes}


def exists(stacks, name: str) -> bool:
    return name in [found["Name"] for found in stacks.client("s3").list_buckets()["Buckets"]]


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "ROLLBACK_COMPLETE"])
def test_a_new_stack_takes_what_is_there_and_never_deletes_it(stacks, status):
    name = f"imported-{status.split('_')[0].lower()}"
    stacks.make_bucket(name)
    versions = {"Status": "Enabled"}
    body = template(
        Kept=bucket(name, VersioningConfiguration=versions), Added=bucket(f"{name}-added")
    )
    if status == "ROLLBACK_COMPLETE":
        bad = resource("AWS::KMS::Alias", AliasName="alias/broken", TargetKeyId="missing")
        body["Resources"]["Bad"] = {**bad, "DependsOn": ["Kept", "Added"]}
    actions = propose(stacks, name, body)
    assert (actions["Kept"], actions["Added"]) == ("Import", "Add")
    assert stacks.execute(name) == status
    lines = [
        (event["ResourceStatus"], event.get("ResourceStatusReason"))
        for event in stacks.events(name)
        if event["LogicalResourceId"] == "Kept"
    ]
    assert lines[:4] == [
        ("IMPORT_IN_PROGRESS", "Resource import started."),
        ("IMPORT_COMPLETE", "Resource import completed."),
        ("UPDATE_IN_PROGRESS", TAGGING),
        ("UPDATE_COMPLETE", None),
    ]
    # The update handler sets what the template says, not the tags alone.
    s3 = stacks.client("s3")
    assert s3.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"
    assert {"Key": "team", "Value": "search"} in s3.get_bucket_tagging(Bucket=name)["TagSet"]
    # The policy is `RetainExceptOnCreate`: what this operation made goes, what it found stays.
    assert exists(stacks, name)
    assert exists(stacks, f"{name}-added") is (status == "CREATE_COMPLETE")
    stacks.delete(name)
    assert exists(stacks, name)


def test_an_update_imports_too(stacks):
    stacks.make_bucket("imported-later")
    stacks.create("later", template(First=bucket("first-of-later")))
    body = template(First=bucket("first-of-later"), Later=bucket("imported-later"))
    assert propose(stacks, "later", body, "UPDATE")["Later"] == "Import"
    assert stacks.execute("later") == "UPDATE_COMPLETE"
    assert stacks.physical_id("later", "Later") == "imported-later"


def test_only_literal_names_that_are_kept_and_belong_to_nobody_are_imported(stacks):
    for name in ("named-by-function", "not-kept"):
        stacks.make_bucket(name)
    stacks.create("owner", template(Owned=bucket("owned-by-another")))
    body = template(
        Function=bucket({"Fn::Sub": "named-by-function"}),
        Delete=bucket("not-kept", "Delete"),
        Owned=bucket("owned-by-another"),
    )
    assert set(propose(stacks, "others", body).values()) == {"Add"}
    assert stacks.execute("others") == "ROLLBACK_COMPLETE"
    assert "already exists" in stacks.reason("others", "Function", "CREATE_FAILED")


@pytest.mark.parametrize(
    ("make", "body"),
    [
        (
            lambda stacks: stacks.client("ecr").create_repository(repositoryName="imported/ecr"),
            resource("AWS::ECR::Repository", RepositoryName="imported/ecr"),
        ),
        (
            lambda stacks: stacks.client("logs").create_log_group(logGroupName="imported/logs"),
            resource("AWS::Logs::LogGroup", LogGroupName="imported/logs", RetentionInDays=7),
        ),
    ],
    ids=["repository", "log-group"],
)
def test_repositories_and_log_groups_are_imported_by_their_names(stacks, make, body):
    name = body["Type"].split("::")[1].lower() + "-imported"
    kept = template(Kept={**body, "DeletionPolicy": "Retain"})
    assert propose(stacks, f"{name}-new", kept) == {"Kept": "Add"}
    stacks.api.delete_stack(StackName=f"{name}-new")
    make(stacks)
    assert propose(stacks, name, kept) == {"Kept": "Import"}
    assert stacks.execute(name) == "CREATE_COMPLETE"
