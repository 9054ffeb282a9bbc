"""Change sets: what the CDK CLI deploys with, and what it refuses beforehand."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

CAPABILITIES = ["CAPABILITY_NAMED_IAM"]


def template(value: Any = "one", **more: Any) -> str:
    properties = {"Type": "String", "Value": value}
    return json.dumps(
        {"Resources": {"P": {"Type": "AWS::SSM::Parameter", "Properties": properties}}, **more}
    )


def propose(stacks, name: str, body: str, kind: str = "UPDATE", **options: Any) -> dict[str, Any]:
    stacks.api.create_change_set(
        StackName=name,
        ChangeSetName=options.pop("ChangeSetName", "deploy"),
        ChangeSetType=kind,
        TemplateBody=body,
        Capabilities=CAPABILITIES,
        **options,
    )
    found: dict[str, Any] = stacks.api.describe_change_set(StackName=name, ChangeSetName="deploy")
    return found


def execute(stacks, name: str, **options: Any) -> str:
    stacks.api.execute_change_set(StackName=name, ChangeSetName="deploy", **options)
    status: str = stacks.settled(name)
    return status


def deploy(stacks, name: str, body: str, kind: str = "UPDATE", **options: Any) -> str:
    """What the CDK CLI does: remove the old change set, make a new one, execute it."""
    if kind == "UPDATE":
        stacks.api.delete_change_set(StackName=name, ChangeSetName="deploy")
    assert propose(stacks, name, body, kind, **options)["Status"] == "CREATE_COMPLETE"
    return execute(stacks, name)


def test_a_new_stack_is_under_review_until_it_is_executed(stacks):
    change_set = propose(stacks, "new", template(), "CREATE")
    assert stacks.describe("new")["StackStatus"] == "REVIEW_IN_PROGRESS"
    assert change_set["ExecutionStatus"] == "AVAILABLE"
    (change,) = change_set["Changes"]
    assert change["ResourceChange"]["Action"] == "Add"
    assert change["ResourceChange"]["LogicalResourceId"] == "P"
    assert stacks.api.get_template(StackName="new", ChangeSetName="deploy")["TemplateBody"]
    assert execute(stacks, "new") == "CREATE_COMPLETE"
    done = stacks.api.describe_change_set(StackName="new", ChangeSetName="deploy")
    assert done["ExecutionStatus"] == "EXECUTE_COMPLETE"
    with pytest.raises(ClientError, match="cannot be executed in its current status"):
        stacks.api.execute_change_set(StackName="new", ChangeSetName="deploy")
    with pytest.raises(ClientError, match="already exists and cannot be created again"):
        propose(stacks, "new", template(), "CREATE")


def test_an_abandoned_stack_can_be_deleted(stacks):
    stack_id = propose(stacks, "abandoned", template(), "CREATE")["StackId"]
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
    change_set = propose(stacks, "still", template())
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
        propose(stacks, name, template(), "CREATE")
    arn = stacks.api.list_change_sets(StackName="one-of-two")["Summaries"][0]["ChangeSetId"]
    assert stacks.api.describe_change_set(ChangeSetName=arn)["StackName"] == "one-of-two"
    for _ in range(2):
        stacks.api.delete_change_set(StackName="one-of-two", ChangeSetName="deploy")
    with pytest.raises(ClientError, match=r"ChangeSet \[deploy\] does not exist"):
        stacks.api.describe_change_set(StackName="one-of-two", ChangeSetName="deploy")
    assert stacks.api.describe_change_set(StackName="two-of-two", ChangeSetName="deploy")
    with pytest.raises(ClientError, match="ChangeSet deploy already exists"):
        propose(stacks, "two-of-two", template(), "CREATE")


def test_a_change_set_tells_what_is_replaced(stacks):
    def body(name: str, value: str) -> str:
        return json.dumps(
            {
                "Resources": {
                    "Group": {
                        "Type": "AWS::Logs::LogGroup",
                        "Properties": {"LogGroupName": name, "RetentionInDays": 1},
                    },
                    "User": {
                        "Type": "AWS::SSM::Parameter",
                        "Properties": {
                            "Name": {"Fn::Sub": "/told/${Group}"},
                            "Type": "String",
                            "Value": value,
                        },
                    },
                }
            }
        )

    assert deploy(stacks, "told", body("told1", "v"), "CREATE") == "CREATE_COMPLETE"
    stacks.api.delete_change_set(StackName="told", ChangeSetName="deploy")
    changes = {
        change["ResourceChange"]["LogicalResourceId"]: change["ResourceChange"]
        for change in propose(stacks, "told", body("told2", "w"))["Changes"]
    }
    assert changes["Group"]["Replacement"] == "True"
    assert changes["Group"]["Details"][0]["Target"]["RequiresRecreation"] == "Always"
    assert changes["User"]["Replacement"] == "Conditional"
    details = {item["Target"]["Name"]: item for item in changes["User"]["Details"]}
    assert details["Name"]["Evaluation"] == "Dynamic"
    assert details["Value"]["Target"]["RequiresRecreation"] == "Never"
    assert execute(stacks, "told") == "UPDATE_COMPLETE"


def test_template_url_is_read_from_this_servers_s3(stacks):
    s3 = stacks.client("s3")
    s3.create_bucket(
        Bucket="templates", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
    )
    s3.put_object(Bucket="templates", Key="a/b.json", Body=template("from-s3"))
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
    body = template(
        {"Ref": "Bucket"},
        Parameters={
            "Bucket": {
                "Type": "AWS::SSM::Parameter::Value<String>",
                "Default": "/slipway/local/bucket",
            }
        },
    )
    with pytest.raises(ClientError) as caught:
        propose(stacks, "ssm", body, "CREATE")
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
    alias = {"Type": "AWS::KMS::Alias", "Properties": {"AliasName": "alias/x", "TargetKeyId": "no"}}
    body = json.dumps({"Resources": {"Bad": alias}})
    propose(stacks, "paused", body, "CREATE")
    assert execute(stacks, "paused", DisableRollback=True) == "CREATE_FAILED"
    propose(stacks, "doing-nothing", body, "CREATE", OnStackFailure="DO_NOTHING")
    assert execute(stacks, "doing-nothing") == "CREATE_FAILED"


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        (
            {"F": {"Type": "AWS::GameLift::Fleet"}},
            r"Template format error: Unrecognized resource types: \[AWS::GameLift::Fleet\]\. "
            r"docs/embedded-aws\.md .* `slipway local start --record TYPE`",
        ),
        (
            {"C": {"Type": "Custom::Thing", "Properties": {"ServiceToken": "t"}}},
            r"Unrecognized resource types: \[Custom::Thing\]",
        ),
        (
            {"B": {"Type": "AWS::S3::Bucket", "Properties": {"ReplicationConfiguration": {}}}},
            r"property \[ReplicationConfiguration\] of AWS::S3::Bucket is unknown or not emulated",
        ),
        (
            {"R": {"Type": "AWS::IAM::Policy", "Properties": {"PolicyName": "p"}}},
            r"resource R with message: #: required key \[PolicyDocument\] not found",
        ),
        (
            {
                "A": {"Type": "AWS::Logs::LogGroup", "DependsOn": "B"},
                "B": {"Type": "AWS::Logs::LogGroup", "DependsOn": "A"},
                "C": {"Type": "AWS::Logs::LogGroup", "DependsOn": "A"},
            },
            r"Circular dependency between resources: \[A, B\]",
        ),
        (
            {"A": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": {"Ref": "X"}}}},
            r"Template format error: Unresolved resource dependencies \[X\] in the Resources block",
        ),
        (
            {
                "A": {"Type": "AWS::Logs::LogGroup"},
                "B": {
                    "Type": "AWS::Logs::LogGroup",
                    "Properties": {"LogGroupName": {"Fn::GetAtt": ["A", "Nope"]}},
                },
            },
            "resource A does not support attribute type Nope in Fn::GetAtt",
        ),
        ({}, "At least one Resources member must be defined"),
        ({"A": {"Type": "AWS::Logs::LogGroup", "Propertys": {}}}, "Invalid template resource"),
        (
            {"A": {"Type": "AWS::Logs::LogGroup", "CreationPolicy": {}}},
            "the embedded AWS does not emulate CreationPolicy",
        ),
        (
            {"A": {"Type": "AWS::Logs::LogGroup", "DeletionPolicy": "Snapshot"}},
            "DeletionPolicy is Snapshot, and must be one of Delete, Retain, RetainExceptOnCreate",
        ),
    ],
)
def test_refused_templates(stacks, resources, message):
    body = json.dumps({"Resources": resources})
    with pytest.raises(ClientError, match=message):
        propose(stacks, "refused", body, "CREATE")
    with pytest.raises(ClientError, match="does not exist"):
        stacks.describe("refused")


def test_iam_needs_a_capability(stacks):
    role = {
        "Type": "AWS::IAM::Role",
        "Properties": {"RoleName": "r", "AssumeRolePolicyDocument": {}},
    }
    with pytest.raises(ClientError, match=r"Requires capabilities : \[CAPABILITY_NAMED_IAM\]"):
        stacks.api.create_stack(
            StackName="iam", TemplateBody=json.dumps({"Resources": {"R": role}})
        )


def test_changing_a_resources_type_is_refused(stacks):
    assert deploy(stacks, "typed", template(), "CREATE") == "CREATE_COMPLETE"
    other = json.dumps({"Resources": {"P": {"Type": "AWS::Logs::LogGroup"}}})
    with pytest.raises(ClientError, match="Update of resource type is not permitted"):
        propose(stacks, "typed", other, ChangeSetName="other")


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
