"""The image stack's resources and rights, also with a company's mirrors in a VPC.

`test_security.py` and `test_shipped.py` have scanners look at image stacks without mirrors.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import botocore.session
import pytest
from aws_cdk import aws_s3_assets as assets
from botocore.validate import ParamValidator

from slipway.cli.plan_text import describe_plan
from slipway.facts import images
from slipway.facts.images import ImageFacts, image
from slipway.facts.neuron.drivers import newest_neuron_version
from slipway.facts.tensorrt.releases import TensorRTRelease, tensorrt_releases
from slipway.image_sources import image_digest
from slipway.planning.families.neuron.hardware import image_bases
from slipway.planning.families.tensorrt import deployment as tensorrt_image
from slipway.planning.plan import ImagePlan
from slipway.project import Project
from slipway.stacks.assembly import Selection
from slipway.stacks.constructs.image_build import ImageBuild, ImageToBuild, build_specification
from slipway.stacks.functions.image_build import _LOOK_SECONDS, _LOOKS
from slipway.stacks.image_stack import images_to_build
from tests.support.linting import lint
from tests.support.projects import ENVIRONMENTS, PRODUCTION
from tests.support.upgrades import kept, replaced
from tests.synth.assemblies import Assembly, add_stacks, new_app
from tests.synth.image_stacks import (
    MODELS,
    REGISTRY,
    STACK,
    make_project,
    requests,
    sources,
    statements,
    synthesise,
)
from tests.synth.security import nag

RELEASED = sorted((Path(__file__).parents[1] / "golden" / "releases").glob(f"*/{STACK}.json"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    models = {name: MODELS[name] for name in ("newest", "volta")}
    return make_project(tmp_path_factory.mktemp("project"), models)


@pytest.fixture(scope="module")
def assembly(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesise(project, tmp_path_factory.mktemp("cdk.out"))


# What it holds


def test_the_repository_outlives_the_stack_but_not_its_failed_creation(assembly: Assembly):
    repository = assembly.only(STACK, "AWS::ECR::Repository")
    assert repository["DeletionPolicy"] == "RetainExceptOnCreate"
    assert repository["UpdateReplacePolicy"] == "Retain"
    properties = repository["Properties"]
    assert properties["RepositoryName"] == "slipway/tensorrt"
    assert properties["EmptyOnDelete"] is True
    assert properties["ImageTagMutability"] == "IMMUTABLE"
    assert properties["ImageScanningConfiguration"] == {"ScanOnPush": True}
    rules = json.loads(properties["LifecyclePolicy"]["LifecyclePolicyText"])["rules"]
    # No rule of ECR knows what serves, so none may expire an image with a tag.
    assert [(rule["rulePriority"], rule["selection"]) for rule in rules] == [
        (
            1,
            {
                "tagStatus": "untagged", "countType": "sinceImagePushed",
                "countUnit": "days", "countNumber": 1,
            },
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.parent.name)
def test_an_upgrade_keeps_the_repository(assembly: Assembly, released: Path):
    before = json.loads(released.read_text("utf-8"))
    assert kept(before)
    assert replaced(before, assembly.template(STACK)) == []


def test_a_further_base_moves_no_image_to_another_logical_id(
    assembly: Assembly, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    older = TensorRTRelease("10.1", "24.05-py3", "12.4", "sm70")
    releases = {older.version: older, **tensorrt_releases()}
    monkeypatch.setattr(tensorrt_image, "tensorrt_releases", lambda: releases)
    after = synthesise(project, tmp_path).resources(STACK, "Custom::SlipwayImage")
    before = assembly.resources(STACK, "Custom::SlipwayImage")
    assert len(after) == len(before) + 2
    assert {name: after[name]["Properties"] for name in before} == {
        name: resource["Properties"] for name, resource in before.items()
    }


def test_another_digest_of_a_base_is_another_image(
    assembly: Assembly, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    newest, oldest = "nvidia/tensorrt:25.09-py3", "nvidia/tensorrt:24.09-py3"
    fingerprint = image_digest(project.root, "tensorrt")
    for number, digit in enumerate("ab"):
        digest = f"sha256:{digit * 64}"
        monkeypatch.setattr(images, "_base_digests", lambda digest=digest: {newest: digest})
        again = Project(project.root)
        found = synthesise(again, tmp_path / str(number))
        tag = f"trt10.13-{digit * 12}-{fingerprint}"
        built = [
            (uri.partition(":")[2], base)
            for uri, base, target in requests(found, STACK)
            if target == "serving"
        ]
        assert built == [
            (f"trt10.4-{fingerprint}", f"nvcr.io/{oldest}"),
            (tag, f"nvcr.io/{newest}@{digest}"),
        ]
        plan = again.plan("newest", PRODUCTION)
        assert (plan.image.tag, plan.image.base) == (tag, f"nvcr.io/{newest}@{digest}")
        assert f" nvcr.io/{newest}@{digest}\n" in describe_plan(plan)
        by_tag = describe_plan(again.plan("volta", PRODUCTION))
        assert f" nvcr.io/{oldest}, by its tag only\n" in by_tag
        # The same resources: CloudFormation updates each in place.
        assert set(found.resources(STACK, "Custom::SlipwayImage")) == set(
            assembly.resources(STACK, "Custom::SlipwayImage")
        )


def test_no_build_starts_before_its_end_can_be_told(assembly: Assembly):
    (right,) = assembly.resources(STACK, "AWS::IAM::Policy")
    (repository,) = assembly.resources(STACK, "AWS::ECR::Repository")
    builds = assembly.resources(STACK, "Custom::SlipwayImage")
    before = {right, repository}
    for name, request in builds.items():
        # And none before the one before it is over: accounts may run one at a time.
        assert set(request["DependsOn"]) == before
        before.add(name)
    assert len(before) == 2 + 4


def test_the_function_calls_itself_and_nothing_else_calls_it(assembly: Assembly):
    (function,) = assembly.resources(STACK, "AWS::Lambda::Function")
    policy = assembly.only(STACK, "AWS::IAM::Policy")["Properties"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Action"], statement["Resource"]) == (
        "lambda:InvokeFunction",
        {"Fn::GetAtt": [function, "Arn"]},
    )
    assert assembly.resources(STACK, "AWS::Lambda::Permission") == {}
    # It looks for less time than a call may last, and a call of CodeBuild may take a second.
    limit = assembly.only(STACK, "AWS::Lambda::Function")["Properties"]["Timeout"]
    assert _LOOKS * (_LOOK_SECONDS + 1) < limit <= 900


def test_docker_runs_the_specification_on_x86_within_cloudformations_hour(assembly: Assembly):
    project = assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"]
    assert project["TimeoutInMinutes"] + project["QueuedTimeoutInMinutes"] < 60
    assert "VpcConfig" not in project
    environment = project["Environment"]
    assert environment["Type"] == "LINUX_CONTAINER"
    assert environment["Image"].startswith("aws/codebuild/amazonlinux-x86_64-standard:")
    assert environment["PrivilegedMode"] is True
    assert project["Source"]["BuildSpec"] == build_specification()
    assert environment["EnvironmentVariables"] == [
        {"Name": "DOCKERFILE", "Type": "PLAINTEXT", "Value": "containers/tensorrt/Dockerfile"}
    ]


def rights(assembly: Assembly, service: str) -> dict[str, tuple[Any, Any]]:
    return {
        sid: (each["Action"], each["Resource"])
        for sid, each in statements(assembly, STACK, service).items()
    }


def log_group_arn(assembly: Assembly, word: str) -> dict[str, list[str]]:
    (name,) = (name for name in assembly.resources(STACK, "AWS::Logs::LogGroup") if word in name)
    return {"Fn::GetAtt": [name, "Arn"]}


def test_the_build_may_do_this_and_nothing_else(assembly: Assembly):
    bucket, _, key = sources(assembly).partition("/")
    assert rights(assembly, "codebuild.amazonaws.com") == {
        "ReadSources": (
            ["s3:GetObject", "s3:GetObjectVersion"], f"arn:aws:s3:::{bucket}/{key}",
        ),
        "FindSources": (["s3:GetBucketAcl", "s3:GetBucketLocation"], f"arn:aws:s3:::{bucket}"),
        "LogInToRegistries": ("ecr:GetAuthorizationToken", "*"),
        "PushImages": (
            [
                "ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:CompleteLayerUpload",
                "ecr:InitiateLayerUpload", "ecr:PutImage", "ecr:UploadLayerPart",
            ],
            "arn:aws:ecr:eu-west-1:210987654321:repository/slipway/tensorrt",
        ),
        "WriteLogs": (
            ["logs:CreateLogStream", "logs:PutLogEvents"], log_group_arn(assembly, "BuildLog"),
        ),
    }  # fmt: skip


def test_the_function_may_do_this_and_nothing_else(assembly: Assembly):
    (project,) = assembly.resources(STACK, "AWS::CodeBuild::Project")
    assert rights(assembly, "lambda.amazonaws.com") == {
        "Builds": (
            ["codebuild:BatchGetBuilds", "codebuild:StartBuild"],
            {"Fn::GetAtt": [project, "Arn"]},
        ),
        "WriteLogs": (
            ["logs:CreateLogStream", "logs:PutLogEvents"],
            log_group_arn(assembly, "FunctionLog"),
        ),
    }


def test_a_base_image_in_ecr_may_be_pulled(tmp_path: Path):
    app = new_app(tmp_path)
    place = cdk.Environment(account="210987654321", region="eu-west-1")
    stack = cdk.Stack(app, STACK, env=place)
    (folder := tmp_path / "sources").mkdir()
    base = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch:2.4-gpu"
    image = ImagePlan("210987654321", "eu-west-1", "slipway/neuron", "a")
    ImageBuild(
        stack,
        "Build",
        images=[ImageToBuild("trt10.13", image, base, "serving")],
        sources=assets.Asset(stack, "Sources", path=str(folder)),
        dockerfile="Dockerfile",
        after=(),
    )
    app.synth()
    assert rights(Assembly(tmp_path), "codebuild.amazonaws.com")["PullBases"] == (
        [
            "ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer",
        ],
        "arn:aws:ecr:us-east-1:763104351884:repository/huggingface-pytorch",
    )  # fmt: skip


def test_neuron_has_an_image_on_each_of_awss_bases():
    registry = "763104351884.dkr.ecr.eu-west-1.amazonaws.com"
    assert [
        (built.image.uri, built.base_image, built.target)
        for built in images_to_build(PRODUCTION, "neuron", "0123", image_bases(PRODUCTION))
    ] == [
        (
            f"{REGISTRY}/slipway/neuron:{tag}-0123{suffix}",
            f"{registry}/{facts.repository}:{facts.tag}",
            target,
        )
        for tag, facts in (
            ("neuron1.13.1-sdk2.20.2", newest("pytorch-inference-neuron")),
            ("neuronx2.9.0-sdk2.29.1", newest("pytorch-inference-neuronx")),
        )
        for suffix, target in (("", "serving"), ("-compiler", "compiler"))
    ]


def newest(framework: str) -> ImageFacts:
    return image(framework, newest_neuron_version(framework), "eu-west-1")


def test_a_container_of_the_users_own_has_no_images(tmp_path):
    project = Project(tmp_path)
    with pytest.raises(ValueError, match="Slipway builds no image for the container custom"):
        project.image_bases("custom", PRODUCTION)


# What the services and the scanners say of it


def lower_camel(value: Any) -> Any:
    if isinstance(value, Mapping) and not set(value) & {"Ref", "Fn::GetAtt"}:
        return {key[:1].lower() + key[1:]: lower_camel(item) for key, item in value.items()}
    if isinstance(value, Mapping):
        return f"arn:aws:iam::210987654321:role/{next(iter(value.values()))}"
    if isinstance(value, list):
        return [lower_camel(item) for item in value]
    return value


def complaint(service: str, operation: str, parameters: dict[str, Any]) -> str:
    model = botocore.session.get_session().get_service_model(service).operation_model(operation)
    return ParamValidator().validate(parameters, model.input_shape).generate_report()


def test_codebuild_and_ecr_would_take_it(assembly: Assembly):
    project = lower_camel(assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"])
    project["source"]["buildspec"] = project["source"].pop("buildSpec")
    assert complaint("codebuild", "CreateProject", {"name": "name", **project}) == ""
    assert "Unknown parameter" in complaint("codebuild", "CreateProject", {**project, "x": 1})
    repository = lower_camel(assembly.only(STACK, "AWS::ECR::Repository")["Properties"])
    policy = repository.pop("lifecyclePolicy")
    del repository["emptyOnDelete"]
    repository["tags"] = [{"Key": tag["key"], "Value": tag["value"]} for tag in repository["tags"]]
    assert complaint("ecr", "CreateRepository", repository) == ""
    named = {"repositoryName": "slipway/tensorrt", **policy}
    assert complaint("ecr", "PutLifecyclePolicy", named) == ""


# With mirrors

BUILDS = """\
  image_builds:
    registry: 210987654321.dkr.ecr.eu-central-1.amazonaws.com/nvcr
    index_url: https://mirror.example.com/simple
    python_url: https://mirror.example.com/python
    neuron_index_url: https://mirror.example.com/neuron
    ca_bundle: certificates/mirror.pem
    vpc:
      vpc_id: vpc-0a1b2c3d
      subnet_ids: [subnet-0a1b2c3d, subnet-4e5f6a7b]
      security_group_ids: [sg-0a1b2c3d]
"""


Mirrored = tuple[Assembly, dict[str, Any]]


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Mirrored:
    """The assembly, and what cdk-nag says of it."""
    models = {"newest": MODELS["newest"]}
    root, outdir = tmp_path_factory.mktemp("mirrored"), tmp_path_factory.mktemp("cdk.out")
    project = make_project(root, models, environments=ENVIRONMENTS + BUILDS)
    (root / "certificates").mkdir()
    (root / "certificates" / "mirror.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    app = new_app(outdir)
    add_stacks(app, project, Selection(environment="production", models=("newest",)))
    return Assembly(outdir), nag(app)


def test_the_bases_come_from_the_mirror_under_their_own_names(mirrored: Mirrored):
    assembly, _ = mirrored
    bases = {
        resource["Properties"]["BaseImage"]
        for resource in assembly.resources(STACK, "Custom::SlipwayImage").values()
    }
    registry = "210987654321.dkr.ecr.eu-central-1.amazonaws.com/nvcr"
    assert bases == {f"{registry}/nvidia/tensorrt:{tag}-py3" for tag in ("24.09", "25.09")}


def test_the_project_has_the_mirrors_and_the_network(mirrored: Mirrored):
    assembly, _ = mirrored
    project = assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"]
    variables = {
        variable["Name"]: variable["Value"]
        for variable in project["Environment"]["EnvironmentVariables"]
    }
    bundle = variables.pop("CA_BUNDLE")
    assert variables == {
        "DOCKERFILE": "containers/tensorrt/Dockerfile",
        "UV_DEFAULT_INDEX": "https://mirror.example.com/simple",
        "UV_PYTHON_INSTALL_MIRROR": "https://mirror.example.com/python",
        "NEURON_INDEX": "https://mirror.example.com/neuron",
    }
    bucket, _, key = bundle.removeprefix("s3://").partition("/")
    assert (assembly.directory / f"asset.{key}").read_text() == "-----BEGIN CERTIFICATE-----\n"
    assert project["VpcConfig"] == {
        "VpcId": "vpc-0a1b2c3d",
        "Subnets": ["subnet-0a1b2c3d", "subnet-4e5f6a7b"],
        "SecurityGroupIds": ["sg-0a1b2c3d"],
    }
    assert (
        f"arn:aws:s3:::{bucket}/{key}"
        in statements(assembly, STACK, "codebuild")["ReadSources"]["Resource"]
    )


def test_the_build_may_pull_from_the_mirror_and_attach_to_its_subnets_alone(mirrored: Mirrored):
    assembly, _ = mirrored
    found = statements(assembly, STACK, "codebuild")
    assert found["PullBases"]["Resource"] == (
        "arn:aws:ecr:eu-central-1:210987654321:repository/nvcr/nvidia/tensorrt"
    )
    assert found["ManageNetworkInterfaces"]["Action"] == [
        "ec2:CreateNetworkInterface",
        "ec2:DeleteNetworkInterface",
        "ec2:DescribeDhcpOptions",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcs",
    ]
    attach = found["AttachNetworkInterfaces"]
    assert attach["Action"] == "ec2:CreateNetworkInterfacePermission"
    assert attach["Resource"] == "arn:aws:ec2:eu-west-1:210987654321:network-interface/*"
    assert attach["Condition"] == {
        "StringEquals": {
            "ec2:AuthorizedService": "codebuild.amazonaws.com",
            "ec2:Subnet": [
                "arn:aws:ec2:eu-west-1:210987654321:subnet/subnet-0a1b2c3d",
                "arn:aws:ec2:eu-west-1:210987654321:subnet/subnet-4e5f6a7b",
            ],
        }
    }


def test_cfn_lint_and_cdk_nag_find_only_what_is_acknowledged(mirrored: Mirrored):
    assembly, report = mirrored
    path = assembly.template_file(STACK)
    assert [str(match) for match in lint([path])[path]] == []
    assert report["violations"] == []
    role = f"{STACK}/Build/BuildRole/Resource"
    interfaces = "arn:aws:ec2:eu-west-1:210987654321:network-interface/*"
    assert {
        (construct["constructPath"], item["ruleName"])
        for item in report["suppressedViolations"]
        for construct in item["violatingConstructs"]
        if construct["constructPath"].startswith(STACK)
    } == {
        (role, "AwsSolutions-IAM5[Resource::*]"),
        (role, f"AwsSolutions-IAM5[Resource::{interfaces}]"),
        (f"{STACK}/Build/Project", "AwsSolutions-CB4"),
    }
