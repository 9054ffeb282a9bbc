"""An image stack that builds from a company's mirrors, in a VPC."""

from typing import Any

import pytest

from slipway.project import Project
from slipway.stacks.assembly import Selection
from tests.support.linting import lint
from tests.support.projects import ENVIRONMENTS, config_text, write_project
from tests.synth.assemblies import Assembly, add_stacks, new_app
from tests.synth.scanners import nag

STACK = "image-tensorrt"
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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("project")
    models = {"model": config_text("model")}
    write_project(root, models, published=["model"], environments=ENVIRONMENTS + BUILDS)
    (root / "certificates").mkdir()
    (root / "certificates" / "mirror.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    return Project(root)


@pytest.fixture(scope="module")
def built(project: Project, tmp_path_factory: pytest.TempPathFactory) -> tuple[Assembly, Any]:
    """The assembly, and what cdk-nag says of it."""
    outdir = tmp_path_factory.mktemp("cdk.out")
    app = new_app(outdir)
    add_stacks(app, project, Selection(environment="production", models=("model",)))
    return Assembly(outdir), nag(app, outdir)


@pytest.fixture(scope="module")
def assembly(built: tuple[Assembly, Any]) -> Assembly:
    return built[0]


def test_the_bases_come_from_the_mirror_under_their_own_names(assembly: Assembly):
    bases = {
        resource["Properties"]["BaseImage"]
        for resource in assembly.resources(STACK, "Custom::SlipwayImage").values()
    }
    registry = "210987654321.dkr.ecr.eu-central-1.amazonaws.com/nvcr"
    assert bases == {f"{registry}/nvidia/tensorrt:{tag}-py3" for tag in ("24.09", "25.09")}


def test_the_project_has_the_mirrors_and_the_network(assembly: Assembly):
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
    assert f"arn:aws:s3:::{bucket}/{key}" in statements(assembly)["ReadSources"]["Resource"]


def statements(assembly: Assembly) -> dict[str, Any]:
    (role,) = (
        resource["Properties"]
        for resource in assembly.resources(STACK, "AWS::IAM::Role").values()
        if "codebuild.amazonaws.com" in str(resource["Properties"]["AssumeRolePolicyDocument"])
    )
    (policy,) = role["Policies"]
    return {each["Sid"]: each for each in policy["PolicyDocument"]["Statement"]}


def test_the_build_may_pull_from_the_mirror_and_attach_to_its_subnets_alone(assembly: Assembly):
    found = statements(assembly)
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


def test_cfn_lint_and_cdk_nag_find_nothing(built: tuple[Assembly, Any]):
    assembly, report = built
    path = assembly.template_file(STACK)
    assert [str(match) for match in lint([path])[path]] == []
    assert report["violations"] == []
