"""Roles, network and parameters: what a template says is what the API shows."""

import pytest
from botocore.exceptions import ClientError

from tests.embedded.cloudformation.templates import (
    ACCOUNT,
    ARN,
    get_att,
    read_policy,
    resource,
    template,
)
from tests.support.roles import TRUST


def test_role_and_policies(stacks):
    role = resource(
        "AWS::IAM::Role",
        AssumeRolePolicyDocument=TRUST,
        ManagedPolicyArns=["arn:aws:iam::aws:policy/ReadOnlyAccess"],
        Policies=[{"PolicyName": "inline", "PolicyDocument": read_policy("s3:GetObject")}],
        MaxSessionDuration="7200",
        Tags=[{"Key": "team", "Value": "ml"}],
    )
    roles, logs, ecr = [{"Ref": "Role"}], read_policy("logs:Put"), read_policy("ecr:BatchGetImage")
    attached = resource("AWS::IAM::Policy", PolicyName="attached", Roles=roles, PolicyDocument=logs)
    described = {"Description": "managed", "Roles": roles, "PolicyDocument": ecr}
    managed = resource("AWS::IAM::ManagedPolicy", **described)
    body = template(
        {"Arn": get_att("Role", "Arn"), "Role": {"Ref": "Role"}, "Managed": {"Ref": "Managed"}},
        Role=role,
        Attached=attached,
        Managed=managed,
        Profile=resource("AWS::IAM::InstanceProfile", Roles=roles),
    )
    assert stacks.create("roles", body) == "CREATE_COMPLETE"
    outputs = stacks.outputs("roles")
    name = outputs["Role"]
    assert outputs["Arn"] == f"arn:aws:iam::{ACCOUNT}:role/{name}"
    iam = stacks.client("iam")
    assert iam.get_role(RoleName=name)["Role"]["MaxSessionDuration"] == 7200
    assert sorted(iam.list_role_policies(RoleName=name)["PolicyNames"]) == ["attached", "inline"]
    policies = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
    arns = {"arn:aws:iam::aws:policy/ReadOnlyAccess", outputs["Managed"]}
    assert {each["PolicyArn"] for each in policies} == arns

    role["Properties"]["ManagedPolicyArns"] = []
    role["Properties"]["Policies"][0]["PolicyName"] = "renamed"
    managed["Properties"]["PolicyDocument"] = read_policy("ecr:*")
    attached["Properties"]["PolicyDocument"] = read_policy("logs:*")
    assert stacks.update("roles", body) == "UPDATE_COMPLETE"
    assert stacks.outputs("roles") == outputs
    assert sorted(iam.list_role_policies(RoleName=name)["PolicyNames"]) == ["attached", "renamed"]
    document = iam.get_role_policy(RoleName=name, PolicyName="attached")["PolicyDocument"]
    assert document["Statement"][0]["Action"] == "logs:*"
    version = iam.get_policy(PolicyArn=outputs["Managed"])["Policy"]["DefaultVersionId"]
    assert version == "v2"

    assert stacks.delete("roles") == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="NoSuchEntity"):
        iam.get_role(RoleName=name)


def test_network(stacks):
    ec2 = stacks.client("ec2")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    https = {"CidrIp": "10.0.0.0/16", "IpProtocol": "tcp", "FromPort": 443, "ToPort": "443"}
    group = resource(
        "AWS::EC2::SecurityGroup",
        GroupDescription="endpoints",
        VpcId=vpc,
        SecurityGroupIngress=[https],
        SecurityGroupEgress=[https],
    )
    endpoint = resource(
        "AWS::EC2::VPCEndpoint",
        VpcId=vpc,
        ServiceName="com.amazonaws.eu-west-1.ecr.api",
        VpcEndpointType="Interface",
        PrivateDnsEnabled=True,
        SecurityGroupIds=[get_att("Group", "GroupId")],
    )
    body = template({"Group": get_att("Group", "GroupId")}, Group=group, Endpoint=endpoint)
    assert stacks.create("network", body) == "CREATE_COMPLETE"
    group_id = stacks.outputs("network")["Group"]
    shown = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]
    assert [p["FromPort"] for p in shown["IpPermissions"]] == [443]
    ranges = [r["CidrIp"] for p in shown["IpPermissionsEgress"] for r in p["IpRanges"]]
    assert ranges == ["10.0.0.0/16"]

    del group["Properties"]["SecurityGroupEgress"]
    assert stacks.update("network", body) == "UPDATE_COMPLETE"
    shown = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]
    assert [p["IpProtocol"] for p in shown["IpPermissionsEgress"]] == ["-1"]
    assert stacks.delete("network") == "DELETE_COMPLETE"


def test_parameter(stacks):
    stored = {"Name": "/slipway/local/key", "Type": "String", "Value": "one", "Tags": {"a": "b"}}
    parameter = resource("AWS::SSM::Parameter", **stored)
    body = template({"Value": get_att("Parameter", "Value")}, Parameter=parameter)
    # A tag of the stack gives way to one of the resource.
    options = {"Tags": [{"Key": key, "Value": "of the stack"} for key in ("a", "e")]}
    assert stacks.create("parameter", body, **options) == "CREATE_COMPLETE"
    parameter["Properties"] |= {"Value": "two", "Tags": {"c": "d"}}
    options["Tags"][0]["Key"] = "c"
    assert stacks.update("parameter", body, **options) == "UPDATE_COMPLETE"
    assert stacks.outputs("parameter") == {"Value": "two"}
    ssm = stacks.client("ssm")
    assert ssm.get_parameter(Name="/slipway/local/key")["Parameter"]["Version"] == 2
    tags = ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId="/slipway/local/key")
    assert {tag["Key"]: tag["Value"] for tag in tags["TagList"]} == {"c": "d", "e": "of the stack"}
    assert stacks.delete("parameter") == "DELETE_COMPLETE"


def test_a_type_of_motos_own(stacks):
    queue = resource("AWS::SQS::Queue", QueueName="jobs", VisibilityTimeout=30)
    body = template({"Arn": get_att("Queue", "Arn"), "Url": {"Ref": "Queue"}}, Queue=queue)
    assert stacks.create("queue", body) == "CREATE_COMPLETE"
    assert stacks.outputs("queue")["Arn"] == ARN.format("sqs", "jobs")
    assert stacks.delete("queue") == "DELETE_COMPLETE"
    assert "QueueUrls" not in stacks.client("sqs").list_queues()


def test_deleting_what_is_gone_already_succeeds(stacks):
    body = template(
        {"Name": {"Ref": "Bucket"}},
        Bucket=resource("AWS::S3::Bucket"),
        Role=resource("AWS::IAM::Role", RoleName="gone", AssumeRolePolicyDocument=TRUST),
        Group=resource("AWS::Logs::LogGroup", LogGroupName="gone"),
        Parameter=resource("AWS::SSM::Parameter", Name="gone", Type="String", Value="v"),
        Repository=resource("AWS::ECR::Repository", RepositoryName="gone"),
    )
    assert stacks.create("gone", body) == "CREATE_COMPLETE"
    stacks.client("s3").delete_bucket(Bucket=stacks.outputs("gone")["Name"])
    stacks.client("iam").delete_role(RoleName="gone")
    stacks.client("logs").delete_log_group(logGroupName="gone")
    stacks.client("ssm").delete_parameter(Name="gone")
    stacks.client("ecr").delete_repository(repositoryName="gone")
    assert stacks.delete("gone") == "DELETE_COMPLETE"
