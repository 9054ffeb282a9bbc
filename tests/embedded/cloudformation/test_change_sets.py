"""Change sets: what the CDK CLI deploys with, and what they refuse and import."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.embedded.cloudformation import templates
from tests.embedded.cloudformation.templates import get_att, resource

TAGGING = "Apply stack-level tags to imported resource if applicable."


def template(value: Any = "one", **more: Any) -> str:
    parameter = resource("AWS::SSM::Parameter", Type="String", Value=value)
    return json.dumps({"Resources": {"P": parameter}, **more})


def group(depends_on: str | None = None, **properties: Any) -> dict[str, Any]:
    return resource("AWS::Logs::LogGroup", depends_on, **properties)


def deploy(stacks, name: str, body: str, kind: str = "UPDATE", **options: Any) -> str:
    """What the CDK CLI does: remove the old change set, make a new one, execute it."""
    if kind == "UPDATE":
        stacks.api.delete_change_set(StackName=name, ChangeSetName="deploy")
    assert stacks.propose(name, body, kind, **options)["Status"] == "CREATE_COMPLETE"
    return stacks.execute(name)


def test_a_new_stack_is_under_review_until_it_is_executed(stacks):
    change_set = stacks.propose("new", template(), "CREATE")
    assert stacks.describe("new")["StackStatus"] == "REVIEW_IN_PROGRESS"
    assert change_set["ExecutionStatus"] == "AVAILABLE"
    (change,) = change_set["Changes"]
    assert change["ResourceChange"]["Action"] == "Add"
    assert change["ResourceChange"]["LogicalResourceId"] == "P"
    assert stacks.api.get_template(StackName="new", ChangeSetName="deploy")["TemplateBody"]
    assert stacks.execute("new") == "CREATE_COMPLETE"
    done = stacks.api.describe_change_set(StackName="new", ChangeSetName="deploy")
    assert done["ExecutionStatus"] == "EXECUTE_COMPLETE"
    with pytest.raises(ClientError, match="cannot be executed in its current status"):
        stacks.api.execute_change_set(StackName="new", ChangeSetName="deploy")
    with pytest.raises(ClientError, match="already exists and cannot be created again"):
        stacks.propose("new", template(), "CREATE")


def test_an_abandoned_stack_can_be_deleted(stacks):
    stack_id = stacks.propose("abandoned", template(), "CREATE")["StackId"]
    stacks.api.delete_stack(StackName="abandoned")
    assert stacks.settled(stack_id) == "DELETE_COMPLETE"


def test_several_stacks_share_a_change_sets_name_again_and_again(stacks):
    names = ("many-a", "many-b", "many-c")
    for name in names:
        assert deploy(stacks, name, template("0"), "CREATE") == "CREATE_COMPLETE"
    for number in range(1, 4):
        for name in names:
            assert deploy(stacks, name, template(str(number))) == "UPDATE_COMPLETE"
    for name in names:
        value = stacks.client("ssm").get_parameter(Name=stacks.physical_id(name, "P"))
        assert value["Parameter"]["Value"] == "3"


def test_no_changes(stacks):
    assert deploy(stacks, "still", template(), "CREATE") == "CREATE_COMPLETE"
    stacks.api.delete_change_set(StackName="still", ChangeSetName="deploy")
    change_set = stacks.propose("still", template())
    assert change_set["Status"] == "FAILED"
    assert change_set["ExecutionStatus"] == "UNAVAILABLE"
    assert change_set["StatusReason"] == (
        "The submitted information didn't contain changes. Submit different information to "
        "create a change set."
    )
    with pytest.raises(ClientError, match=r"No updates are to be performed\."):
        stacks.update("still", template())
    # An output alone is a change.
    assert stacks.update("still", template(Outputs={"O": {"Value": "v"}})) == "UPDATE_COMPLETE"


def test_change_sets_are_deleted_and_found_by_stack_and_name(stacks):
    for name in ("one-of-two", "two-of-two"):
        stacks.propose(name, template(), "CREATE")
    arn = stacks.api.list_change_sets(StackName="one-of-two")["Summaries"][0]["ChangeSetId"]
    assert stacks.api.describe_change_set(ChangeSetName=arn)["StackName"] == "one-of-two"
    for _ in range(2):
        stacks.api.delete_change_set(StackName="one-of-two", ChangeSetName="deploy")
    with pytest.raises(ClientError, match=r"ChangeSet \[deploy\] does not exist"):
        stacks.api.describe_change_set(StackName="one-of-two", ChangeSetName="deploy")
    assert stacks.api.describe_change_set(StackName="two-of-two", ChangeSetName="deploy")
    with pytest.raises(ClientError, match="ChangeSet deploy already exists"):
        stacks.propose("two-of-two", template(), "CREATE")


def test_a_change_set_tells_what_is_replaced(stacks):
    def body(name: str, value: str) -> str:
        told = {"Name": {"Fn::Sub": "/told/${Group}"}, "Type": "String", "Value": value}
        resources = {
            "Group": group(LogGroupName=name, RetentionInDays=1),
            "User": resource("AWS::SSM::Parameter", **told),
        }
        return json.dumps({"Resources": resources})

    assert deploy(stacks, "told", body("told1", "v"), "CREATE") == "CREATE_COMPLETE"
    stacks.api.delete_change_set(StackName="told", ChangeSetName="deploy")
    changes = {
        change["ResourceChange"]["LogicalResourceId"]: change["ResourceChange"]
        for change in stacks.propose("told", body("told2", "w"))["Changes"]
    }
    assert changes["Group"]["Replacement"] == "True"
    assert changes["Group"]["Details"][0]["Target"]["RequiresRecreation"] == "Always"
    assert changes["User"]["Replacement"] == "Conditional"
    details = {item["Target"]["Name"]: item for item in changes["User"]["Details"]}
    assert details["Name"]["Evaluation"] == "Dynamic"
    assert details["Value"]["Target"]["RequiresRecreation"] == "Never"
    assert stacks.execute("told") == "UPDATE_COMPLETE"


def test_template_url_is_read_from_this_servers_s3(stacks):
    stacks.make_bucket("templates")
    body = template("from-s3")
    stacks.client("s3").put_object(Bucket="templates", Key="a/b.json", Body=body)
    for number, url in enumerate(
        (
            f"{stacks.aws.connection.url}/templates/a/b.json",
            "https://s3.eu-west-1.amazonaws.com/templates/a/b.json",
            "https://templates.s3.eu-west-1.amazonaws.com/a/b.json",
        )
    ):
        name = f"by-url-{number}"
        stacks.api.create_stack(StackName=name, TemplateURL=url)
        assert stacks.settled(name) == "CREATE_COMPLETE"
    with pytest.raises(ClientError, match="S3 error: The specified key does not exist"):
        stacks.api.create_stack(
            StackName="x", TemplateURL=f"{stacks.aws.connection.url}/templates/none"
        )


def test_ssm_parameters_are_read_anew(stacks):
    ssm = stacks.client("ssm")
    named = {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/slipway/local/bucket"}
    body = template({"Ref": "Bucket"}, Parameters={"Bucket": named})
    with pytest.raises(ClientError) as caught:
        stacks.propose("ssm", body, "CREATE")
    assert caught.value.response["Error"]["Code"] == "ValidationError"
    assert caught.value.response["Error"]["Message"] == (
        "Unable to fetch parameters [/slipway/local/bucket] from parameter store for this account."
    )
    with pytest.raises(ClientError, match="Stack with id ssm does not exist"):
        stacks.describe("ssm")
    ssm.put_parameter(Name="/slipway/local/bucket", Type="String", Value="first")
    assert deploy(stacks, "ssm", body, "CREATE") == "CREATE_COMPLETE"
    (shown,) = stacks.describe("ssm")["Parameters"]
    assert shown["ParameterValue"] == "/slipway/local/bucket"
    assert shown["ResolvedValue"] == "first"
    ssm.put_parameter(Name="/slipway/local/bucket", Type="String", Value="second", Overwrite=True)
    use_previous = [{"ParameterKey": "Bucket", "UsePreviousValue": True}]
    assert deploy(stacks, "ssm", body, Parameters=use_previous) == "UPDATE_COMPLETE"
    value = ssm.get_parameter(Name=stacks.physical_id("ssm", "P"))["Parameter"]["Value"]
    assert value == "second"


def test_executing_without_rollback(stacks):
    alias = resource("AWS::KMS::Alias", AliasName="alias/x", TargetKeyId="no")
    body = json.dumps({"Resources": {"Bad": alias}})
    stacks.propose("paused", body, "CREATE")
    assert stacks.execute("paused", DisableRollback=True) == "CREATE_FAILED"
    stacks.propose("doing-nothing", body, "CREATE", OnStackFailure="DO_NOTHING")
    assert stacks.execute("doing-nothing") == "CREATE_FAILED"


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        (
            {"F": {"Type": "AWS::GameLift::Fleet"}},
            r"Template format error: Unrecognized resource types: \[AWS::GameLift::Fleet\]\. "
            r"docs/embedded-aws\.md .* `slipway local start --record TYPE`",
        ),
        (
            {"C": resource("Custom::Thing", ServiceToken="t")},
            r"Unrecognized resource types: \[Custom::Thing\]",
        ),
        (
            {"B": resource("AWS::S3::Bucket", ReplicationConfiguration={})},
            r"property \[ReplicationConfiguration\] of AWS::S3::Bucket is unknown or not emulated",
        ),
        (
            {"R": resource("AWS::IAM::Policy", PolicyName="p")},
            r"resource R with message: #: required key \[PolicyDocument\] not found",
        ),
        (
            {"A": group("B"), "B": group("A"), "C": group("A")},
            r"Circular dependency between resources: \[A, B\]",
        ),
        (
            {"A": group(LogGroupName={"Ref": "X"})},
            r"Template format error: Unresolved resource dependencies \[X\] in the Resources block",
        ),
        (
            {"A": group(), "B": group(LogGroupName=get_att("A", "Nope"))},
            "resource A does not support attribute type Nope in Fn::GetAtt",
        ),
        ({}, "At least one Resources member must be defined"),
        ({"A": {**group(), "Propertys": {}}}, "Invalid template resource"),
        (
            {"A": {**group(), "CreationPolicy": {}}},
            "the embedded AWS does not emulate CreationPolicy",
        ),
        (
            {"A": {**group(), "DeletionPolicy": "Snapshot"}},
            "DeletionPolicy is Snapshot, and must be one of Delete, Retain, RetainExceptOnCreate",
        ),
    ],
)
def test_refused_templates(stacks, resources, message):
    body = json.dumps({"Resources": resources})
    with pytest.raises(ClientError, match=message):
        stacks.propose("refused", body, "CREATE")
    with pytest.raises(ClientError, match="does not exist"):
        stacks.describe("refused")


def test_iam_needs_a_capability(stacks):
    role = resource("AWS::IAM::Role", RoleName="r", AssumeRolePolicyDocument={})
    body = json.dumps({"Resources": {"R": role}})
    with pytest.raises(ClientError, match=r"Requires capabilities : \[CAPABILITY_NAMED_IAM\]"):
        stacks.api.create_stack(StackName="iam", TemplateBody=body)


def test_changing_a_resources_type_is_refused(stacks):
    assert deploy(stacks, "typed", template(), "CREATE") == "CREATE_COMPLETE"
    other = json.dumps({"Resources": {"P": group()}})
    with pytest.raises(ClientError, match="Update of resource type is not permitted"):
        stacks.propose("typed", other, ChangeSetName="other")


def test_template_summary_and_validation(stacks):
    body = template(
        Parameters={"Size": {"Type": "Number", "Default": 1, "Description": "how many"}},
        Description="one parameter",
    )
    summary = stacks.api.get_template_summary(TemplateBody=body)
    assert summary["ResourceTypes"] == ["AWS::SSM::Parameter"]
    assert summary["Parameters"][0]["ParameterKey"] == "Size"
    assert stacks.api.validate_template(TemplateBody=body)["Description"] == "one parameter"
    with pytest.raises(ClientError, match="not well-formed"):
        stacks.api.validate_template(TemplateBody="a: [")


def bucket(name: Any, policy: str = "RetainExceptOnCreate", **properties: Any) -> dict[str, Any]:
    body = resource("AWS::S3::Bucket", BucketName=name, **properties)
    return {**body, "DeletionPolicy": policy}


def import_into(stacks, name: str, body: dict[str, Any], kind: str = "CREATE") -> dict[str, str]:
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
    body = templates.template(
        Kept=bucket(name, VersioningConfiguration=versions), Added=bucket(f"{name}-added")
    )
    if status == "ROLLBACK_COMPLETE":
        bad = resource("AWS::KMS::Alias", AliasName="alias/broken", TargetKeyId="missing")
        body["Resources"]["Bad"] = {**bad, "DependsOn": ["Kept", "Added"]}
    actions = import_into(stacks, name, body)
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
    stacks.create("later", templates.template(First=bucket("first-of-later")))
    body = templates.template(First=bucket("first-of-later"), Later=bucket("imported-later"))
    assert import_into(stacks, "later", body, "UPDATE")["Later"] == "Import"
    assert stacks.execute("later") == "UPDATE_COMPLETE"
    assert stacks.physical_id("later", "Later") == "imported-later"


def test_only_literal_names_that_are_kept_and_belong_to_nobody_are_imported(stacks):
    for name in ("named-by-function", "not-kept"):
        stacks.make_bucket(name)
    stacks.create("owner", templates.template(Owned=bucket("owned-by-another")))
    body = templates.template(
        Function=bucket({"Fn::Sub": "named-by-function"}),
        Delete=bucket("not-kept", "Delete"),
        Owned=bucket("owned-by-another"),
    )
    assert set(import_into(stacks, "others", body).values()) == {"Add"}
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
    kept = templates.template(Kept={**body, "DeletionPolicy": "Retain"})
    assert import_into(stacks, f"{name}-new", kept) == {"Kept": "Add"}
    stacks.api.delete_stack(StackName=f"{name}-new")
    make(stacks)
    assert import_into(stacks, name, kept) == {"Kept": "Import"}
    assert stacks.execute(name) == "CREATE_COMPLETE"
