"""Storage, keys, roles and networks: what a template says is what the API shows."""

import json
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError
from moto.s3.models import s3_backends

from tests.embedded.cloudformation.templates import (
    ACCOUNT,
    ARN,
    get_att,
    policy,
    read_policy,
    resource,
    template,
)
from tests.support.roles import TRUST


def test_bucket(stacks):
    by_key = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": get_att("Key", "Arn")}
    encryption = {"BucketKeyEnabled": True, "ServerSideEncryptionByDefault": by_key}
    bucket = resource(
        "AWS::S3::Bucket",
        BucketEncryption={"ServerSideEncryptionConfiguration": [encryption]},
        VersioningConfiguration={"Status": "Enabled"},
        PublicAccessBlockConfiguration={"BlockPublicAcls": "true", "RestrictPublicBuckets": True},
        OwnershipControls={"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
        LifecycleConfiguration={
            "Rules": [
                {
                    "Id": "old",
                    "Status": "Enabled",
                    "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
                    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": "7"},
                }
            ]
        },
        Tags=[{"Key": "team", "Value": "ml"}],
    )
    over_tls = policy(
        Effect="Deny",
        Action="s3:*",
        Principal={"AWS": "*"},
        Resource=[get_att("Bucket", "Arn"), {"Fn::Sub": "${Bucket.Arn}/*"}],
        Condition={"Bool": {"aws:SecureTransport": "false"}},
    )
    body = template(
        {
            "Name": {"Ref": "Bucket"},
            "Domain": get_att("Bucket", "DomainName"),
            "Regional": get_att("Bucket", "RegionalDomainName"),
        },
        Key=resource("AWS::KMS::Key", KeyPolicy=read_policy("kms:*")),
        Bucket=bucket,
        Policy=resource("AWS::S3::BucketPolicy", Bucket={"Ref": "Bucket"}, PolicyDocument=over_tls),
    )
    assert stacks.create("bucket", body) == "CREATE_COMPLETE"
    outputs = stacks.outputs("bucket")
    name = outputs["Name"]
    assert name.startswith("bucket-bucket-")
    assert outputs["Domain"] == f"{name}.s3.amazonaws.com"
    assert outputs["Regional"] == f"{name}.s3.eu-west-1.amazonaws.com"

    s3 = stacks.client("s3")
    assert s3.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"
    encryption = s3.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]
    default = encryption["Rules"][0]["ApplyServerSideEncryptionByDefault"]
    assert default["SSEAlgorithm"] == "aws:kms"
    assert default["KMSMasterKeyID"].startswith(ARN.format("kms", "key/"))
    assert encryption["Rules"][0]["BucketKeyEnabled"] is True
    block = s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"]
    assert block["BlockPublicAcls"] is True
    assert block["BlockPublicPolicy"] is False
    rule = s3.get_bucket_lifecycle_configuration(Bucket=name)["Rules"][0]
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    assert s3.get_bucket_tagging(Bucket=name)["TagSet"] == [{"Key": "team", "Value": "ml"}]
    assert "aws:SecureTransport" in s3.get_bucket_policy(Bucket=name)["Policy"]
    ownership = s3.get_bucket_ownership_controls(Bucket=name)["OwnershipControls"]
    assert ownership["Rules"][0]["ObjectOwnership"] == "BucketOwnerEnforced"

    del bucket["Properties"]["LifecycleConfiguration"], bucket["Properties"]["Tags"]
    bucket["Properties"]["VersioningConfiguration"] = {"Status": "Suspended"}
    assert stacks.update("bucket", body) == "UPDATE_COMPLETE"
    assert stacks.outputs("bucket")["Name"] == name
    assert s3.get_bucket_versioning(Bucket=name)["Status"] == "Suspended"
    with pytest.raises(ClientError, match="NoSuchLifecycleConfiguration"):
        s3.get_bucket_lifecycle_configuration(Bucket=name)

    s3.put_object(Bucket=name, Key="weights", Body=b"x")
    assert stacks.delete("bucket") == "DELETE_FAILED"
    assert "not empty" in stacks.reason("bucket", "Bucket", "DELETE_FAILED")
    # The key must outlive the bucket that needs it.
    assert "Key DELETE_IN_PROGRESS" not in stacks.history("bucket")
    assert stacks.delete("bucket", RetainResources=["Bucket"]) == "DELETE_COMPLETE"
    assert s3.list_objects_v2(Bucket=name)["KeyCount"] == 1


def test_bucket_logging_and_existing_name(stacks):
    logs = resource("AWS::S3::Bucket", BucketName="access-logs-bucket")
    delivery = resource(
        "AWS::S3::BucketPolicy",
        Bucket={"Ref": "Logs"},
        PolicyDocument=policy(
            Action="s3:PutObject",
            Principal={"Service": "logging.s3.amazonaws.com"},
            Resource={"Fn::Sub": "${Logs.Arn}/*"},
        ),
    )
    bucket = resource(
        "AWS::S3::Bucket",
        LoggingConfiguration={"DestinationBucketName": {"Ref": "Logs"}, "LogFilePrefix": "b/"},
    )
    body = template({"Name": {"Ref": "Bucket"}}, Logs=logs, Delivery=delivery, Bucket=bucket)
    assert stacks.create("logged", body) == "CREATE_COMPLETE"
    name = stacks.outputs("logged")["Name"]
    enabled = stacks.client("s3").get_bucket_logging(Bucket=name)["LoggingEnabled"]
    assert enabled["TargetBucket"] == "access-logs-bucket"
    assert enabled["TargetPrefix"] == "b/"

    assert stacks.create("taken", template(Logs=logs)) == "ROLLBACK_COMPLETE"
    assert stacks.reason("taken", "Logs", "CREATE_FAILED") == "access-logs-bucket already exists"
    assert stacks.client("s3").head_bucket(Bucket="access-logs-bucket")
    assert stacks.delete("logged") == "DELETE_COMPLETE"


def test_key_and_alias(stacks):
    key = resource(
        "AWS::KMS::Key",
        KeyPolicy=read_policy("kms:*"),
        Description="first",
        EnableKeyRotation=True,
        PendingWindowInDays=7,
    )
    alias = resource("AWS::KMS::Alias", AliasName="alias/slipway", TargetKeyId={"Ref": "Key"})
    body = template({"Id": {"Ref": "Key"}, "Arn": get_att("Key", "Arn")}, Key=key, Alias=alias)
    assert stacks.create("keys", body) == "CREATE_COMPLETE"
    outputs = stacks.outputs("keys")
    assert outputs["Arn"] == ARN.format("kms", f"key/{outputs['Id']}")
    kms = stacks.client("kms")
    assert kms.get_key_rotation_status(KeyId=outputs["Id"])["KeyRotationEnabled"]
    assert kms.describe_key(KeyId="alias/slipway")["KeyMetadata"]["KeyId"] == outputs["Id"]

    key["Properties"] |= {"Description": "second", "EnableKeyRotation": "false"}
    assert stacks.update("keys", body) == "UPDATE_COMPLETE"
    assert kms.describe_key(KeyId=outputs["Id"])["KeyMetadata"]["Description"] == "second"
    assert not kms.get_key_rotation_status(KeyId=outputs["Id"])["KeyRotationEnabled"]

    assert stacks.delete("keys") == "DELETE_COMPLETE"
    assert kms.describe_key(KeyId=outputs["Id"])["KeyMetadata"]["KeyState"] == "PendingDeletion"


def test_repository_and_project(stacks):
    untagged = {"tagStatus": "untagged", "countType": "imageCountMoreThan", "countNumber": 5}
    rule = {"rulePriority": 1, "selection": untagged, "action": {"type": "expire"}}
    repository = resource(
        "AWS::ECR::Repository",
        RepositoryName="slipway/tensorrt",
        ImageScanningConfiguration={"ScanOnPush": True},
        ImageTagMutability="IMMUTABLE",
        LifecyclePolicy={"LifecyclePolicyText": json.dumps({"rules": [rule]})},
        Tags=[{"Key": "team", "Value": "ml"}],
    )
    role = resource("AWS::IAM::Role", AssumeRolePolicyDocument=TRUST)
    project = resource(
        "AWS::CodeBuild::Project",
        Artifacts={"Type": "NO_ARTIFACTS"},
        Cache={"Type": "NO_CACHE"},
        EncryptionKey="alias/aws/s3",
        ServiceRole=get_att("Role", "Arn"),
        Environment={
            "ComputeType": "BUILD_GENERAL1_LARGE",
            "Image": "aws/codebuild/standard:7.0",
            "PrivilegedMode": "true",
            "Type": "LINUX_CONTAINER",
            "EnvironmentVariables": [
                {"Name": "REPOSITORY", "Type": "PLAINTEXT", "Value": {"Ref": "Repository"}}
            ],
        },
        Source={"Type": "NO_SOURCE", "BuildSpec": "version: 0.2"},
        TimeoutInMinutes=60,
    )
    body = template(
        {"Uri": get_att("Repository", "RepositoryUri"), "Project": {"Ref": "Project"}},
        Repository=repository,
        Role=role,
        Project=project,
    )
    assert stacks.create("images", body) == "CREATE_COMPLETE"
    outputs = stacks.outputs("images")
    assert outputs["Uri"] == f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com/slipway/tensorrt"
    ecr, codebuild = stacks.client("ecr"), stacks.client("codebuild")
    shown = ecr.describe_repositories(repositoryNames=["slipway/tensorrt"])["repositories"][0]
    assert shown["imageTagMutability"] == "IMMUTABLE"
    assert shown["imageScanningConfiguration"] == {"scanOnPush": True}
    built = codebuild.batch_get_projects(names=[outputs["Project"]])["projects"][0]
    assert built["environment"]["privilegedMode"] is True
    assert built["source"]["buildspec"] == "version: 0.2"

    repository["Properties"]["ImageScanningConfiguration"] = {"ScanOnPush": False}
    del repository["Properties"]["LifecyclePolicy"]
    project["Properties"]["TimeoutInMinutes"] = 30
    assert stacks.update("images", body) == "UPDATE_COMPLETE"
    with pytest.raises(ClientError, match="LifecyclePolicyNotFound"):
        ecr.get_lifecycle_policy(repositoryName="slipway/tensorrt")
    built = codebuild.batch_get_projects(names=[outputs["Project"]])["projects"][0]
    assert built["timeoutInMinutes"] == 30
    assert stacks.delete("images") == "DELETE_COMPLETE"


def test_the_access_log_of_a_bucket_begins_when_the_bucket_is_an_hour_old(stacks):
    logged = resource(
        "AWS::S3::Bucket",
        BucketName="logged-later",
        LoggingConfiguration={"DestinationBucketName": {"Ref": "Log"}, "LogFilePrefix": "x/"},
    )
    log = resource("AWS::S3::Bucket", BucketName="log-of-later")
    assert stacks.create("logged-later", template(Logged=logged, Log=log)) == "CREATE_COMPLETE"
    s3 = stacks.client("s3")
    s3.put_object(Bucket="logged-later", Key="first")
    assert s3.list_objects_v2(Bucket="log-of-later")["KeyCount"] == 0
    bucket = s3_backends["123456789012"]["aws"].buckets["logged-later"]
    bucket.creation_date -= timedelta(hours=1)
    s3.put_object(Bucket="logged-later", Key="second")
    (entry,) = s3.list_objects_v2(Bucket="log-of-later")["Contents"]
    assert entry["Key"].startswith("x/")


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
