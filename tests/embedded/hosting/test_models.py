import json
import sys
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.config.names import LOCAL_PROGRAM_VARIABLE
from tests.embedded.hosting.conftest import may, refused

ARN = "arn:aws:sagemaker:us-east-1:123456789012"


def create(account: Any, **container: Any) -> dict[str, Any]:
    return {
        "ModelName": account.name(),
        "ExecutionRoleArn": account.role,
        "PrimaryContainer": {"Image": account.image, **container},
    }


def test_model_is_described_as_it_was_created(account):
    name = account.model(mark="m")
    described = account.sagemaker.describe_model(ModelName=name)
    assert described["ModelArn"] == f"{ARN}:model/{name}"
    assert described["PrimaryContainer"]["Environment"] == {"MODE": "ok", "MARK": "m"}
    assert described["EnableNetworkIsolation"] is False
    assert described["CreationTime"].tzinfo is not None


def test_a_name_is_taken_until_its_model_is_deleted(account):
    name, arn = "Mixed-Case", f"{ARN}:model/mixed-case"
    parameters = create(account) | {"ModelName": name}
    assert account.sagemaker.create_model(**parameters)["ModelArn"] == arn
    assert account.sagemaker.describe_model(ModelName=name)["ModelName"] == name
    message = refused(account.sagemaker.create_model, **parameters)
    assert message == f'Cannot create already existing model "{arn}".'
    account.sagemaker.delete_model(ModelName=name)
    for call in (account.sagemaker.describe_model, account.sagemaker.delete_model):
        assert refused(call, ModelName=name) == f'Could not find model "{arn}".'


def test_models_are_listed_newest_first_in_pages(account):
    mine = []
    for number in range(3):
        mine.append(f"listed-{number}")
        account.sagemaker.create_model(**(create(account) | {"ModelName": mine[-1]}))
    page = account.sagemaker.list_models(NameContains="listed", MaxResults=2)
    assert [model["ModelName"] for model in page["Models"]] == ["listed-2", "listed-1"]
    rest = account.sagemaker.list_models(NameContains="listed", NextToken=page["NextToken"])
    assert [model["ModelName"] for model in rest["Models"]] == ["listed-0"]
    assert "NextToken" not in rest
    pages = account.sagemaker.get_paginator("list_models").paginate(
        NameContains="listed",
        SortBy="Name",
        SortOrder="Ascending",
        PaginationConfig={"PageSize": 1},
    )
    assert [model["ModelName"] for part in pages for model in part["Models"]] == mine


NOBODY = "arn:aws:iam::123456789012:role/nobody"
ABROAD = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/tests/stand-in:1"
MISSING = "Could not find model data at "
NOT_EMULATED = "The embedded AWS does not emulate"
LISTED = "docs/embedded-aws/hosting.md lists what it does."


@pytest.mark.parametrize(
    ("uri", "container", "more", "message"),
    [
        ("s3://artifacts/nothing/", {}, {}, f"{MISSING}s3://artifacts/nothing/."),
        ("s3://no-such-bucket/x/", {}, {}, f"{MISSING}s3://no-such-bucket/x/."),
        (
            None,
            {"ModelDataUrl": "s3://artifacts/no.tar.gz"},
            {},
            f"{MISSING}s3://artifacts/no.tar.gz.",
        ),
        (
            "s3://artifacts/model/files",
            {},
            {},
            'S3Uri "s3://artifacts/model/files" of S3DataType S3Prefix must end with a forward '
            'slash ("/").',
        ),
        (
            None,
            {},
            {"ExecutionRoleArn": NOBODY},
            f"Could not assume role {NOBODY}. Please ensure that the role exists and allows "
            "principal 'sagemaker.amazonaws.com' to assume the role.",
        ),
        (
            None,
            {"Image": ABROAD},
            {},
            f'Region of "{ABROAD}" does not match expected region of us-east-1. Cross region ECR '
            "image pulls are not allowed.",
        ),
        (None, {"Mode": "MultiModel"}, {}, f"{NOT_EMULATED} multi-model endpoints (Mode)."),
        (
            None,
            {"ModelPackageName": "package"},
            {},
            f"{NOT_EMULATED} ModelPackageName (model packages). {LISTED}",
        ),
    ],
)
def test_wrong_models_are_refused(account, uri, container, more, message):
    source = account.source(uri) if uri else {}
    parameters = create(account, **source, **container) | more
    assert refused(account.sagemaker.create_model, **parameters) == message


@pytest.mark.parametrize(
    ("condition", "trusted"),
    [
        ({"StringEquals": {"AWS:SourceAccount": "123456789012"}}, True),
        ({"StringEquals": {"AWS:SourceAccount": ["1" * 12, "123456789012"]}}, True),
        ({"StringEquals": {"AWS:SourceAccount": "1" * 12}}, False),
        ({"ArnLike": {"aws:SourceArn": "arn:aws:sagemaker:us-east-1:123456789012:*"}}, True),
        ({"ArnLike": {"aws:SourceArn": "arn:aws:sagemaker:eu-west-1:123456789012:*"}}, False),
        # SageMaker names no endpoint.
        (
            {"ArnLike": {"aws:SourceArn": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/*"}},
            False,
        ),
    ],
)
def test_role_may_trust_sagemaker_for_some_accounts_alone(account, role, condition, trusted):
    statement = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": "sagemaker.amazonaws.com"},
        "Condition": condition,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam = account.client("iam")
    iam.update_assume_role_policy(RoleName=role.name, PolicyDocument=policy)
    parameters = create(account)
    if trusted:
        account.sagemaker.create_model(**parameters)
    else:
        message = refused(account.sagemaker.create_model, **parameters)
        assert message.startswith(f"Could not assume role {role.arn}.")


def test_a_private_registry_needs_a_vpc_and_a_function_that_the_role_may_call(account, role):
    function = "arn:aws:lambda:us-east-1:123456789012:function:credentials"
    auth = {"RepositoryAuthConfig": {"RepositoryCredentialsProviderArn": function}}
    ec2 = account.client("ec2")
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    vpc = {"VpcConfig": {"Subnets": [subnet], "SecurityGroupIds": [group]}}

    def request(mode: str, **more: Any) -> dict[str, Any]:
        config = {"RepositoryAccessMode": mode, **auth}
        image = {"Image": "registry.example.com:5000/search:1", "ImageConfig": config}
        return create(account, **image) | {"ExecutionRoleArn": role.arn, **more}

    model = account.sagemaker.create_model
    assert refused(model, **request("Vpc")) == "RepositoryAccessMode Vpc needs a VpcConfig."
    message = "RepositoryAuthConfig needs RepositoryAccessMode Vpc."
    assert refused(model, **request("Platform", **vpc)) == message
    message = f"{role.arn} may not lambda:InvokeFunction {function}."
    assert refused(model, **request("Vpc", **vpc)) == message
    role.allow(may("lambda:InvokeFunction", on=function))
    model(**request("Vpc", **vpc))


def test_what_is_not_emulated_is_refused(account):
    images = [{"Image": account.image}] * 2
    message = refused(account.sagemaker.create_model, ModelName="several", Containers=images)
    assert message == "The embedded AWS does not emulate several containers in one model."
    message = refused(account.sagemaker.list_training_jobs)
    assert "does not implement sagemaker:ListTrainingJobs" in message


def test_endpoint_config_is_described_as_it_was_created(account):
    model = account.model()
    name = account.config(account.variant(model, VolumeSizeInGB=30, InstanceType="ml.m5.xlarge"))
    described = account.sagemaker.describe_endpoint_config(EndpointConfigName=name)
    assert described["EndpointConfigArn"] == f"{ARN}:endpoint-config/{name}"
    assert described["ProductionVariants"][0]["InitialVariantWeight"] == 1.0
    assert described["ProductionVariants"][0]["VolumeSizeInGB"] == 30
    listed = account.sagemaker.list_endpoint_configs(NameContains=name)["EndpointConfigs"]
    assert [config["EndpointConfigName"] for config in listed] == [name]
    account.sagemaker.delete_endpoint_config(EndpointConfigName=name)
    message = refused(account.sagemaker.describe_endpoint_config, EndpointConfigName=name)
    assert message == f'Could not find endpoint configuration "{ARN}:endpoint-config/{name}".'


def test_volume_size_is_refused_where_there_is_local_storage(account):
    model = account.model()
    for local in ("g5.xlarge", "c5d.large", "g4dn.xlarge", "g6e.xlarge", "p5.48xlarge"):
        with pytest.raises(ClientError, match="VolumeSizeInGB is not supported for instance type"):
            account.config(account.variant(model, VolumeSizeInGB=50, InstanceType=f"ml.{local}"))
    for on_ebs in ("c5.large", "p3.2xlarge", "inf1.xlarge"):
        account.config(account.variant(model, VolumeSizeInGB=50, InstanceType=f"ml.{on_ebs}"))


@pytest.mark.parametrize(
    ("types", "ami", "message"),
    [
        (
            ["ml.m5.xlarge"],
            "al2-ami-sagemaker-inference-gpu-2",
            "Invalid combination: instance m5 and Cuda 12.2. Please provide a supported "
            "configuration for this region.",
        ),
        (
            ["ml.g5.xlarge", "ml.c5.xlarge"],
            "al2023-ami-sagemaker-inference-gpu-4-1",
            "Invalid combination: instance c5 and Cuda 13.0. Please provide a supported "
            "configuration for this region.",
        ),
        (
            ["ml.inf1.xlarge"],
            "al2-ami-sagemaker-inference-neuron-2",
            "Invalid combination: instance inf1 and InferenceAmiVersion",
        ),
        (["ml.g5.xlarge"], "al2-ami-sagemaker-inference-gpu-3-1", None),
        (["ml.p5e.48xlarge"], "al2023-ami-sagemaker-inference-gpu-4-1", None),
        (["ml.inf2.xlarge"], "al2-ami-sagemaker-inference-neuron-2", None),
        (["ml.trn1.2xlarge"], "al2-ami-sagemaker-inference-neuron-2", None),
    ],
)
def test_a_host_image_needs_its_accelerator(account, types, ami, message):
    variant = account.variant(account.model(), InferenceAmiVersion=ami)
    if len(types) > 1:
        del variant["InstanceType"]
        pools = [{"InstanceType": name, "Priority": n} for n, name in enumerate(types, 1)]
        variant["InstancePools"] = pools
    else:
        variant["InstanceType"] = types[0]
    if message is None:
        account.config(variant)
        return
    assert refused(account.config, variant) == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ModelName": "absent"}, f'Could not find model "{ARN}:model/absent".'),
        ({"ContainerStartupHealthCheckTimeoutInSeconds": 3601}, "less than or equal to 3600"),
        ({"ModelDataDownloadTimeoutInSeconds": 3601}, "less than or equal to 3600"),
        ({"InstanceType": "ml.g99.xlarge"}, "satisfy enum value set"),
        (
            {"ManagedInstanceScaling": {"Status": "ENABLED"}},
            "ManagedInstanceScaling is only supported for inference component endpoints",
        ),
        (
            {
                "CoreDumpConfig": {"DestinationS3Uri": "s3://artifacts/dumps/"},
                "EnableSSMAccess": True,
            },
            "CoreDumpConfig (core dumps), EnableSSMAccess (SSM access). docs/embedded-aws/",
        ),
    ],
)
def test_wrong_variants_are_refused(account, change, message):
    variant = account.variant(account.model()) | change
    assert message in refused(account.config, variant)


def test_tags_follow_their_resource(account):
    name = account.name()
    parameters = create(account) | {"ModelName": name, "Tags": [{"Key": "a", "Value": "1"}]}
    arn = account.sagemaker.create_model(**parameters)["ModelArn"]
    account.sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "b", "Value": "2"}])
    account.sagemaker.delete_tags(ResourceArn=arn, TagKeys=["a"])
    assert account.sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "b", "Value": "2"}]
    account.sagemaker.delete_model(ModelName=name)
    assert refused(account.sagemaker.list_tags, ResourceArn=arn) == (
        f'Could not find resource "{arn}".'
    )


def own_image(account: Any, directory: str) -> dict[str, Any]:
    told = {"program": [sys.executable, "stand_in.py"], "directory": directory}
    variables = {"MODE": "ok", "MARK": "own", LOCAL_PROGRAM_VARIABLE: json.dumps(told)}
    image = account.image.replace("tests/stand-in", "search")
    return account.source() | {"Image": image, "Environment": variables}


def test_a_program_of_the_project_stands_for_an_image_of_its_own(account):
    endpoint = account.serve(account.variant(account.model(**own_image(account, "."))))
    assert json.loads(account.invoke(endpoint, "environment"))["MARK"] == "own"
    reason = account.failure(account.variant(account.model(**own_image(account, "gone"))))
    assert "The directory of `serving.local` is missing: " in reason
    assert reason.endswith("/gone.")
