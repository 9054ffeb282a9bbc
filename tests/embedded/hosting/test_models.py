import json
import sys
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.config.names import LOCAL_PROGRAM_VARIABLE
from tests.embedded.hosting.conftest import Role, refused

ARN = "arn:aws:sagemaker:us-east-1:123456789012"


def create(account: Any, **container: Any) -> dict[str, Any]:
    return {
        "ModelName": account.name(),
        "ExecutionRoleArn": account.role,
        "PrimaryContainer": {"Image": account.image, **container},
    }


def test_model_is_described_as_it_was_created(account: Any) -> None:
    name = account.model(mark="m")
    described = account.sagemaker.describe_model(ModelName=name)
    assert described["ModelArn"] == f"{ARN}:model/{name}"
    assert described["PrimaryContainer"]["Environment"] == {"MODE": "ok", "MARK": "m"}
    assert described["EnableNetworkIsolation"] is False
    assert described["CreationTime"].tzinfo is not None


def test_a_name_is_taken_until_its_model_is_deleted(account: Any) -> None:
    name, arn = "Mixed-Case", f"{ARN}:model/mixed-case"
    parameters = create(account) | {"ModelName": name}
    assert account.sagemaker.create_model(**parameters)["ModelArn"] == arn
    assert account.sagemaker.describe_model(ModelName=name)["ModelName"] == name
    message = refused(account.sagemaker.create_model, **parameters)
    assert message == f'Cannot create already existing model "{arn}".'
    account.sagemaker.delete_model(ModelName=name)
    for call in (account.sagemaker.describe_model, account.sagemaker.delete_model):
        assert refused(call, ModelName=name) == f'Could not find model "{arn}".'


def test_models_are_listed_newest_first_in_pages(account: Any) -> None:
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


def test_model_data_must_exist(account: Any) -> None:
    for container, uri in (
        (account.source("s3://artifacts/nothing/"), "s3://artifacts/nothing/"),
        (account.source("s3://no-such-bucket/x/"), "s3://no-such-bucket/x/"),
        ({"ModelDataUrl": "s3://artifacts/no.tar.gz"}, "s3://artifacts/no.tar.gz"),
    ):
        message = refused(account.sagemaker.create_model, **create(account, **container))
        assert message == f"Could not find model data at {uri}."


def test_prefix_must_end_with_a_slash(account: Any) -> None:
    parameters = create(account, **account.source("s3://artifacts/model/files"))
    assert refused(account.sagemaker.create_model, **parameters) == (
        'S3Uri "s3://artifacts/model/files" of S3DataType S3Prefix must end with a forward slash '
        '("/").'
    )


def test_role_must_exist_and_trust_sagemaker(account: Any) -> None:
    arn = "arn:aws:iam::123456789012:role/nobody"
    parameters = create(account) | {"ExecutionRoleArn": arn}
    assert refused(account.sagemaker.create_model, **parameters) == (
        f"Could not assume role {arn}. Please ensure that the role exists and allows principal "
        "'sagemaker.amazonaws.com' to assume the role."
    )


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
def test_role_may_trust_sagemaker_for_some_accounts_alone(
    account: Any, role: Role, condition: Any, trusted: bool
) -> None:
    statement = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": "sagemaker.amazonaws.com"},
        "Condition": condition,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam = account.clients.client("iam", "us-east-1")
    iam.update_assume_role_policy(RoleName=role.name, PolicyDocument=policy)
    parameters = create(account)
    if trusted:
        account.sagemaker.create_model(**parameters)
    else:
        message = refused(account.sagemaker.create_model, **parameters)
        assert message.startswith(f"Could not assume role {role.arn}.")


@pytest.mark.parametrize(
    ("container", "feature"),
    [
        ({"Mode": "MultiModel"}, "multi-model endpoints"),
        ({"ModelPackageName": "package"}, "ModelPackageName (model packages)"),
    ],
)
def test_what_is_not_emulated_is_refused(
    account: Any, container: dict[str, Any], feature: str
) -> None:
    message = refused(account.sagemaker.create_model, **create(account, **container))
    assert f"The embedded AWS does not emulate {feature}" in message


def test_a_private_registry_needs_a_vpc_and_a_function_that_the_role_may_call(
    account: Any, role: Role
) -> None:
    function = "arn:aws:lambda:us-east-1:123456789012:function:credentials"
    auth = {"RepositoryAuthConfig": {"RepositoryCredentialsProviderArn": function}}
    ec2 = account.clients.client("ec2", "us-east-1")
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
    role.allow({"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": function})
    model(**request("Vpc", **vpc))


def test_several_containers_are_refused(account: Any) -> None:
    message = refused(
        account.sagemaker.create_model,
        ModelName=account.name(),
        Containers=[{"Image": account.image}, {"Image": account.image}],
    )
    assert message == "The embedded AWS does not emulate several containers in one model."


def test_operation_that_is_not_implemented_is_refused(account: Any) -> None:
    message = refused(account.sagemaker.list_training_jobs)
    assert "does not implement sagemaker:ListTrainingJobs" in message


def test_an_image_of_another_region_is_refused(account: Any) -> None:
    image = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/tests/stand-in:1"
    parameters = create(account)
    parameters["PrimaryContainer"]["Image"] = image
    assert refused(account.sagemaker.create_model, **parameters) == (
        f'Region of "{image}" does not match expected region of us-east-1. Cross region ECR image '
        "pulls are not allowed."
    )


def test_endpoint_config_is_described_as_it_was_created(account: Any) -> None:
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


def test_endpoint_config_needs_its_models(account: Any) -> None:
    with pytest.raises(ClientError, match=f'Could not find model "{ARN}:model/absent".'):
        account.config(account.variant("absent"))


def test_volume_size_is_refused_where_there_is_local_storage(account: Any) -> None:
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
def test_a_host_image_needs_its_accelerator(
    account: Any, types: list[str], ami: str, message: str | None
) -> None:
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
        ({"ContainerStartupHealthCheckTimeoutInSeconds": 3601}, "less than or equal to 3600"),
        ({"ModelDataDownloadTimeoutInSeconds": 3601}, "less than or equal to 3600"),
        ({"InstanceType": "ml.g99.xlarge"}, "satisfy enum value set"),
        (
            {"ManagedInstanceScaling": {"Status": "ENABLED"}},
            "ManagedInstanceScaling is only supported for inference component endpoints",
        ),
    ],
)
def test_variant_outside_the_bounds_is_refused(
    account: Any, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ClientError, match=message):
        account.config(account.variant(account.model(), **change))


def test_config_that_is_not_emulated_is_refused(account: Any) -> None:
    variant = account.variant(account.model()) | {
        "CoreDumpConfig": {"DestinationS3Uri": "s3://artifacts/dumps/"},
        "EnableSSMAccess": True,
    }
    message = r"CoreDumpConfig \(core dumps\), EnableSSMAccess \(SSM access\)\. docs/embedded-aws/"
    with pytest.raises(ClientError, match=message):
        account.config(variant)


def test_tags_follow_their_resource(account: Any) -> None:
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


def test_a_program_of_the_project_stands_for_an_image_of_its_own(account: Any) -> None:
    endpoint = account.serve(account.variant(account.model(**own_image(account, "."))))
    assert json.loads(account.invoke(endpoint, "environment"))["MARK"] == "own"


def test_a_program_whose_directory_is_missing_does_not_start(account: Any) -> None:
    reason = account.failure(account.variant(account.model(**own_image(account, "gone"))))
    assert "The directory of `serving.local` is missing: " in reason
    assert reason.endswith("/gone.")
