"""The image stack: what it holds, who depends on it, and what CodeBuild runs."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3
import botocore.session
import pytest
from aws_cdk import aws_s3_assets as assets
from botocore.validate import ParamValidator
from moto.events.models import EventPattern
from moto.server import ThreadedMotoServer

from slipway.facts.images import ImageFacts, image
from slipway.facts.neuron.drivers import newest_neuron_version
from slipway.facts.tensorrt.releases import tensorrt_releases
from slipway.image_sources import image_digest
from slipway.planning.families.neuron.image import image_bases
from slipway.planning.images import compiler_image
from slipway.planning.plan import ImagePlan
from slipway.project import Project
from stacks.assembly import Selection, add_stacks
from stacks.constructs.image_build import ImageBuild, ImageToBuild, build_specification
from stacks.image_stack import images_to_build
from tests.support.accounts import forget_accounts
from tests.support.linting import lint
from tests.support.projects import ENVIRONMENTS, PRODUCTION, config_text, write_project
from tests.support.upgrades import kept, replaced
from tests.synth.assemblies import Assembly, new_app
from tests.synth.scanners import nag, validation_findings

STACK = "image-tensorrt"
RELEASED = sorted((Path(__file__).parents[1] / "golden" / "releases").glob(f"*/{STACK}.json"))
REGISTRY = "210987654321.dkr.ecr.eu-west-1.amazonaws.com"
MODELS = {
    "newest": config_text("newest"),
    "volta": config_text(
        "volta", ("[ml.g4dn.xlarge]", "[ml.p3.2xlarge]"), ("target: sm75", "target: sm70")
    ),
    "fresh": config_text("fresh"),
    "triton": config_text("triton").replace("container: tensorrt", "container: nope"),
}
SHARED = ENVIRONMENTS + (
    'staging:\n  account: "210987654321"\n  region: eu-west-1\n'
    'elsewhere:\n  account: "210987654321"\n  region: us-west-2\n'
)


def make_project(root: Path, **keywords: Any) -> Project:
    root.mkdir(parents=True, exist_ok=True)
    write_project(root, MODELS, published=["newest", "volta"], **keywords)
    (root / "containers" / "tensorrt" / "Dockerfile").write_text("FROM scratch\n")
    return Project(root)


def synthesise(project: Project, outdir: Path, *models: str, **keywords: Any) -> Assembly:
    app = new_app(outdir)
    chosen = {"environment": "production", "models": models or ("*",), **keywords}
    add_stacks(app, project, Selection(**chosen))
    app.synth()
    return Assembly(outdir)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("project"), environments=SHARED)


@pytest.fixture(scope="module")
def assembly(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesise(project, tmp_path_factory.mktemp("cdk.out"))


def dependencies(assembly: Assembly, stack: str) -> set[str]:
    found = assembly.stacks()[stack].get("dependencies", [])
    return {name for name in found if not name.endswith(".assets")}


def requests(assembly: Assembly) -> list[dict[str, Any]]:
    return [
        resource["Properties"]
        for resource in assembly.resources(STACK, "Custom::SlipwayImage").values()
    ]


# Which stacks an app holds


def test_a_models_stack_waits_for_its_image(assembly: Assembly):
    assert assembly.stacks()[STACK]["properties"]["stackName"] == "image-tensorrt-production"
    for model in ("newest", "volta"):
        assert dependencies(assembly, model) == {"foundation", STACK}
    assert dependencies(assembly, STACK) == set()


def test_every_image_that_a_plan_can_name_is_built(assembly: Assembly, project: Project):
    repository = f"{REGISTRY}/slipway/tensorrt"
    digest = image_digest(project.root, "tensorrt")
    assert [
        (request["ImageUri"], request["BaseImage"], request["Target"])
        for request in requests(assembly)
    ] == [
        (
            f"{repository}:trt{release.version}-{digest}{suffix}",
            f"nvcr.io/nvidia/tensorrt:{release.base_image}",
            target,
        )
        for release in tensorrt_releases().values()
        for suffix, target in (("", "serving"), ("-compiler", "compiler"))
    ]
    built = {request["ImageUri"] for request in requests(assembly)}
    serving = [project.plan(model, PRODUCTION).image for model in ("newest", "volta")]
    named = {image.uri for each in serving for image in (each, compiler_image(each))}
    assert named == built
    assert len(named) == 4


def test_a_model_that_is_not_published_has_its_image_built_first(project: Project, tmp_path: Path):
    found = synthesise(project, tmp_path, "fresh")
    assert "was never published" in found.annotations("fresh", "error")[0]
    assert set(found.stacks()) == {"foundation", "fresh", STACK}
    assert len(requests(found)) == 4


def test_an_app_that_needs_no_image_has_no_stack_of_one(project: Project, tmp_path: Path):
    assert set(synthesise(project, tmp_path, "triton").stacks()) == {"foundation", "triton"}


def test_the_selection_does_not_change_the_stack(
    assembly: Assembly, project: Project, tmp_path: Path
):
    alone = synthesise(project, tmp_path, "newest")
    assert set(alone.stacks()) == {"foundation", "newest", STACK}
    assert alone.template(STACK) == assembly.template(STACK)


def test_the_embedded_aws_builds_nothing(project: Project, tmp_path: Path):
    found = synthesise(project, tmp_path, "newest", environment="local")
    assert set(found.stacks()) == {"foundation", "newest"}
    assert dependencies(found, "newest") == {"foundation"}


def test_a_missing_source_stops_only_who_needs_it(tmp_path: Path):
    project = make_project(tmp_path / "project")
    shutil.rmtree(project.root / "containers" / "serving")
    found = synthesise(project, tmp_path / "out", "newest")
    assert set(found.stacks()) == {"foundation", "newest"}
    assert "containers/serving is missing" in found.annotations("newest", "error")[0]


@pytest.mark.parametrize(("named", "count"), [(["newest"], 1), (["newest", STACK], 0), (["**"], 0)])
def test_leaving_the_image_out_is_mentioned(project: Project, tmp_path: Path, named, count):
    app = new_app(tmp_path, **{"aws:cdk:bundling-stacks": named})
    add_stacks(app, project, Selection(environment="production", models=("newest",)))
    metadata = app.node.find_child("newest").node.metadata
    notes = [entry.data for entry in metadata if entry.type == "aws:cdk:info"]
    wording = (
        "Deployed without its image (--exclusively). Where that is not there yet, "
        "run `cdk deploy image-tensorrt -c env=production` first."
    )
    assert notes.count(wording) == count


def test_environments_of_one_account_and_region_share_the_repository(
    assembly: Assembly, project: Project, tmp_path: Path
):
    assert len(assembly.resources(STACK, "AWS::ECR::Repository")) == 1
    assert assembly.annotations(STACK, "info") == []
    staging = synthesise(project, tmp_path / "staging", "newest", environment="staging")
    assert staging.resources(STACK, "AWS::ECR::Repository") == {}
    assert requests(staging)[0]["ImageUri"] == requests(assembly)[0]["ImageUri"]
    assert staging.annotations(STACK, "info") == [
        "The repository slipway/tensorrt belongs to the environment production, which comes first "
        "in environments.yaml and has the same account and region. Where it is not there yet, run "
        "`cdk deploy image-tensorrt -c env=production` first."
    ]
    other = synthesise(project, tmp_path / "elsewhere", "newest", environment="elsewhere")
    assert len(other.resources(STACK, "AWS::ECR::Repository")) == 1


# What changes it


def changed_by(root: Path, path: str, tmp_path: Path) -> tuple[Assembly, Assembly]:
    project = make_project(root)
    before = synthesise(project, tmp_path / "before", "newest")
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("# another\n")
    return before, synthesise(Project(root), tmp_path / "after", "newest")


def sources(assembly: Assembly) -> str:
    location: str = assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"]["Source"][
        "Location"
    ]
    return location


def test_a_change_of_the_sources_changes_tag_and_asset(tmp_path: Path):
    before, after = changed_by(tmp_path / "p", "containers/serving/main.py", tmp_path)
    assert sources(before) != sources(after)
    old, new = ({each["ImageUri"] for each in requests(found)} for found in (before, after))
    assert old.isdisjoint(new)
    image = after.only("newest", "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]["Image"]
    assert image in new


@pytest.mark.parametrize(
    "path",
    ["README.md", "containers/triton/model.py", "containers/serving/__pycache__/main.pyc"],
)
def test_a_change_elsewhere_changes_nothing(tmp_path: Path, path: str):
    before, after = changed_by(tmp_path / "p", path, tmp_path)
    assert before.template(STACK) == after.template(STACK)


def test_two_checkouts_give_the_same_bytes(tmp_path: Path):
    found = []
    for name in ("one", "an other/place"):
        root = tmp_path / name
        project = make_project(root)
        for path in (root / "containers").rglob("*"):
            os.utime(path, (len(found), len(found)))
        synthesise(project, root / "out", "newest")
        files = (root / "out").rglob("*")
        found.append(
            {
                path.relative_to(root / "out").as_posix(): path.read_bytes()
                for path in files
                if path.is_file() and (path.name.startswith(STACK) or "asset." in str(path))
            }
        )
    assert found[0] == found[1]
    assert {Path(name).name for name in found[0]} >= {"handler.py", "Dockerfile", "main.py"}


def test_the_asset_holds_the_images_files_and_no_other(assembly: Assembly, project: Project):
    digest = sources(assembly).rpartition("/")[2].removesuffix(".zip")
    folder = assembly.directory / f"asset.{digest}"
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    assert files == [
        "containers/__init__.py", "containers/jobs/main.py", "containers/serving/main.py",
        "containers/tensorrt/main.py",
    ]  # fmt: skip
    assert (folder / "containers" / "tensorrt" / "Dockerfile").is_file()
    assert image_digest(folder, "tensorrt") == image_digest(project.root, "tensorrt")


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
    assert [(rule["rulePriority"], rule["selection"]) for rule in rules] == [
        (
            1,
            {
                "tagStatus": "untagged", "countType": "sinceImagePushed",
                "countUnit": "days", "countNumber": 1,
            },
        ),
        (2, {"tagStatus": "any", "countType": "imageCountMoreThan", "countNumber": 400}),
    ]  # fmt: skip


@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.parent.name)
def test_an_upgrade_keeps_the_repository(assembly: Assembly, released: Path):
    before = json.loads(released.read_text("utf-8"))
    assert kept(before)
    assert replaced(before, assembly.template(STACK)) == []


def test_no_build_starts_before_its_end_can_be_told(assembly: Assembly):
    rules = assembly.resources(STACK, "AWS::Events::Rule")
    permissions = assembly.resources(STACK, "AWS::Lambda::Permission")
    (repository,) = assembly.resources(STACK, "AWS::ECR::Repository")
    builds = assembly.resources(STACK, "Custom::SlipwayImage")
    before = {*rules, *permissions, repository}
    assert len(before) == 2 + 2 + 1
    for name, request in builds.items():
        # And none before the one before it is over: accounts may run one at a time.
        assert set(request["DependsOn"]) == before
        before.add(name)
    assert len(before) == 5 + 4


STATE, PHASE = "CodeBuild Build State Change", "CodeBuild Build Phase Change"


@pytest.mark.parametrize(
    ("kind", "fields", "calls"),
    [
        (STATE, {"build-status": "IN_PROGRESS"}, False),
        # As AWS's guide lists them for a state change.
        (STATE, {"build-status": "SUCCEEDED"}, True),
        (STATE, {"build-status": "FAILED"}, True),
        (STATE, {"build-status": "STOPPED"}, True),
        # Only the API's model has these, and nobody says what else an event may carry.
        (STATE, {"build-status": "FAULT"}, True),
        (STATE, {"build-status": "TIMED_OUT"}, True),
        (STATE, {"build-status": "CLIENT_ERROR"}, True),
        # As AWS's guide lists them for a phase change.
        (PHASE, {"completed-phase": "BUILD", "completed-phase-status": "TIMED_OUT"}, True),
        (PHASE, {"completed-phase": "QUEUED", "completed-phase-status": "TIMED_OUT"}, True),
        (PHASE, {"completed-phase": "PROVISIONING", "completed-phase-status": "FAULT"}, True),
        (PHASE, {"completed-phase": "BUILD", "completed-phase-status": "SUCCEEDED"}, False),
        # The build goes on to finalize, and a state change tells its end.
        (PHASE, {"completed-phase": "BUILD", "completed-phase-status": "FAILED"}, False),
        (PHASE, {"completed-phase": "BUILD", "completed-phase-status": "STOPPED"}, False),
    ],
)
def test_every_end_of_a_build_calls_the_function(
    assembly: Assembly, kind: str, fields: dict[str, str], calls: bool
):
    (project,) = assembly.resources(STACK, "AWS::CodeBuild::Project")
    event = {
        "source": "aws.codebuild",
        "detail-type": kind,
        "detail": {"project-name": "Project-0A1B", "build-id": "arn", **fields},
    }
    (function,) = assembly.resources(STACK, "AWS::Lambda::Function")
    called = []
    for name, resource in assembly.resources(STACK, "AWS::Events::Rule").items():
        properties = resource["Properties"]
        pattern = json.dumps(properties["EventPattern"])
        pattern = pattern.replace(json.dumps({"Ref": project}), '"Project-0A1B"')
        other = {**event, "detail": {**event["detail"], "project-name": "another"}}
        assert not EventPattern.load(pattern).matches_event(other)
        if EventPattern.load(pattern).matches_event(event):
            called.append(name)
        assert [target["Arn"] for target in properties["Targets"]] == [
            {"Fn::GetAtt": [function, "Arn"]}
        ]
    assert len(called) == calls
    sources = {
        resource["Properties"]["SourceArn"]["Fn::GetAtt"][0]
        for resource in assembly.resources(STACK, "AWS::Lambda::Permission").values()
    }
    assert sources == set(assembly.resources(STACK, "AWS::Events::Rule"))


def test_the_whole_build_fits_into_cloudformations_hour(assembly: Assembly):
    project = assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"]
    assert project["TimeoutInMinutes"] + project["QueuedTimeoutInMinutes"] < 60


def test_docker_runs_in_the_build_on_x86(assembly: Assembly):
    project = assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"]
    assert "VpcConfig" not in project
    environment = project["Environment"]
    assert environment["Type"] == "LINUX_CONTAINER"
    assert environment["Image"].startswith("aws/codebuild/amazonlinux-x86_64-standard:")
    assert environment["PrivilegedMode"] is True


def statements(assembly: Assembly, service: str) -> dict[str, tuple[Any, Any]]:
    (role,) = (
        resource["Properties"]
        for resource in assembly.resources(STACK, "AWS::IAM::Role").values()
        if service in str(resource["Properties"]["AssumeRolePolicyDocument"])
    )
    assert "ManagedPolicyArns" not in role
    (policy,) = role["Policies"]
    return {
        statement["Sid"]: (statement["Action"], statement["Resource"])
        for statement in policy["PolicyDocument"]["Statement"]
    }


def log_group_arn(assembly: Assembly, word: str) -> dict[str, list[str]]:
    (name,) = (name for name in assembly.resources(STACK, "AWS::Logs::LogGroup") if word in name)
    return {"Fn::GetAtt": [name, "Arn"]}


def test_the_build_may_do_this_and_nothing_else(assembly: Assembly):
    bucket, _, key = sources(assembly).partition("/")
    assert statements(assembly, "codebuild.amazonaws.com") == {
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
    assert statements(assembly, "lambda.amazonaws.com") == {
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
        images=[ImageToBuild(image, base, "serving")],
        sources=assets.Asset(stack, "Sources", path=str(folder)),
        dockerfile="Dockerfile",
        after=(),
    )
    app.synth()
    assert statements(Assembly(tmp_path), "codebuild.amazonaws.com")["PullBases"] == (
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


def test_cfn_lint_finds_nothing(assembly: Assembly):
    path = assembly.template_file(STACK)
    assert [str(match) for match in lint([path])[path]] == []


def test_the_cdks_own_validation_finds_nothing(assembly: Assembly):
    assert validation_findings(assembly.directory) == []


def test_cdk_nag_finds_only_what_is_acknowledged_with_a_reason(project: Project, tmp_path: Path):
    app = new_app(tmp_path)
    add_stacks(app, project, Selection(environment="production", models=("newest",)))
    report = nag(app, tmp_path)
    assert report["violations"] == []
    excused = {
        (construct["constructPath"], item["ruleName"])
        for item in report["suppressedViolations"]
        for construct in item["violatingConstructs"]
        if construct["constructPath"].startswith(STACK)
    }
    assert excused == {
        (f"{STACK}/Build/BuildRole/Resource", "AwsSolutions-IAM5[Resource::*]"),
        (f"{STACK}/Build/Project", "AwsSolutions-CB4"),
    }


# What CodeBuild runs

STAND_IN = """\
#!{python}
import json, os, sys
name = os.path.basename(sys.argv[0])
call = [name, *sys.argv[1:]]
if call[:2] == ["docker", "login"]:
    call.append("< " + sys.stdin.read())
with open(os.environ["CALLS"], "a", encoding="utf-8") as calls:
    calls.write(json.dumps(call) + "\\n")
if call[:3] == ["aws", "ecr", "batch-get-image"]:
    print(os.environ["IMAGES"])
if call[:3] == ["aws", "s3", "cp"]:
    with open(call[-1], "w", encoding="utf-8") as copy:
        copy.write("certificates from " + call[-2])
if call[:3] == ["aws", "ecr", "get-login-password"]:
    print("password-of-" + call[-1])
if os.environ.get("FAILS") == " ".join(call[:3]):
    sys.exit("it failed")
"""
URI = f"{REGISTRY}/slipway/tensorrt:trt10.13-0123456789abcdef"
BASE = "nvcr.io/nvidia/tensorrt:25.09-py3"
LOOK = [
    "aws", "ecr", "batch-get-image", "--repository-name", "slipway/tensorrt",
    "--image-ids", "imageTag=trt10.13-0123456789abcdef",
    "--query", "length(images)", "--output", "text",
]  # fmt: skip


def token(region: str) -> list[str]:
    return ["aws", "ecr", "get-login-password", "--region", region]


def log_in(registry: str, region: str) -> list[str]:
    return [
        "docker", "login", "--username", "AWS", "--password-stdin", registry,
        f"< password-of-{region}\n",
    ]  # fmt: skip


def build(base: str) -> list[str]:
    return [
        "docker", "buildx", "build", "--platform", "linux/amd64",
        "--provenance=false", "--sbom=false", "--progress", "plain",
        "--build-arg", f"BASE_IMAGE={base}", "--file", "containers/tensorrt/Dockerfile",
        "--target", "compiler",
        "--output", f"type=image,name={URI},oci-mediatypes=false,push=true", ".",
    ]  # fmt: skip


class Build:
    """Runs the specification's commands as CodeBuild does, with what stands in for the programs."""

    def __init__(self, folder: Path, programs: tuple[str, ...] = ("aws", "docker")) -> None:
        self._folder = folder
        self._calls = folder / "calls"
        for name in programs:
            program = folder / name
            program.write_text(STAND_IN.format(python=sys.executable))
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def run(self, base: str = BASE, **variables: str) -> subprocess.CompletedProcess[str]:
        specification = json.loads(build_specification())
        assert specification["version"] == 0.2
        (command,) = specification["phases"]["build"]["commands"]
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self._folder,
            env={
                "PATH": f"{self._folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
                "CALLS": str(self._calls),
                "IMAGE_URI": URI,
                "BASE_IMAGE": base,
                "TARGET": "compiler",
                "DOCKERFILE": "containers/tensorrt/Dockerfile",
                "IMAGES": "0",
                **variables,
            },
            capture_output=True,
            text=True,
        )

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self._calls.read_text("utf-8").splitlines()]


def test_the_project_runs_the_specification_that_is_tested_here(assembly: Assembly):
    project = assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"]
    assert project["Source"]["BuildSpec"] == build_specification()
    assert project["Environment"]["EnvironmentVariables"] == [
        {"Name": "DOCKERFILE", "Type": "PLAINTEXT", "Value": "containers/tensorrt/Dockerfile"}
    ]


def test_an_image_that_is_there_is_not_built_again(tmp_path: Path):
    build_ = Build(tmp_path)
    result = build_.run(IMAGES="1")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{URI} is there already: nothing to build.\n"
    assert build_.calls == [LOOK]


def test_one_that_is_not_is_built_and_pushed(tmp_path: Path):
    build_ = Build(tmp_path)
    result = build_.run()
    assert (result.returncode, result.stderr) == (0, "")
    calls = build_.calls
    assert calls[0] == LOOK
    # The two ends of a pipe start in either order.
    assert sorted(calls[1:3]) == sorted([token("eu-west-1"), log_in(REGISTRY, "eu-west-1")])
    assert calls[3:] == [build(BASE)]


def test_the_registry_of_a_base_in_ecr_is_logged_in_to_as_well(tmp_path: Path):
    registry = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
    build_ = Build(tmp_path)
    assert build_.run(base=f"{registry}/base:1").returncode == 0
    assert log_in(REGISTRY, "eu-west-1") in build_.calls
    assert log_in(registry, "us-east-1") in build_.calls
    assert build_.calls[-1] == build(f"{registry}/base:1")
    assert len(build_.calls) == 6


def test_mirrors_and_their_authorities_reach_the_build(tmp_path: Path):
    build_ = Build(tmp_path)
    certificates = tmp_path / "certs.d"
    result = build_.run(
        base="mirror.example.com:5000/nvcr/nvidia/tensorrt:25.09-py3",
        CA_BUNDLE="s3://assets/0123.pem",
        UV_DEFAULT_INDEX="https://mirror.example.com/simple",
        UV_PYTHON_INSTALL_MIRROR="https://mirror.example.com/python",
        DOCKER_CERTIFICATES=str(certificates),
    )
    assert (result.returncode, result.stderr) == (0, "")
    (copy,) = [call for call in build_.calls if call[:3] == ["aws", "s3", "cp"]]
    assert copy[3:5] == ["--only-show-errors", "s3://assets/0123.pem"]
    # Docker looks for a registry's authorities under its name and port.
    trusted = certificates / "mirror.example.com:5000" / "ca.crt"
    assert trusted.read_text() == "certificates from s3://assets/0123.pem"
    options = build_.calls[-1]
    assert options[options.index("--secret") + 1] == f"id=ca_bundle,src={copy[5]}"
    given = [value for name, value in pairwise(options) if name == "--build-arg"]
    assert given == [
        "BASE_IMAGE=mirror.example.com:5000/nvcr/nvidia/tensorrt:25.09-py3",
        "UV_DEFAULT_INDEX=https://mirror.example.com/simple",
        "UV_PYTHON_INSTALL_MIRROR=https://mirror.example.com/python",
    ]


@pytest.mark.parametrize(
    ("fails", "count"),
    [
        ("aws ecr batch-get-image", 1),
        ("aws ecr get-login-password", 3),
        ("docker login --username", 3),
        ("docker buildx build", 4),
    ],
)
def test_a_step_that_fails_fails_the_build(tmp_path: Path, fails: str, count: int):
    build_ = Build(tmp_path)
    result = build_.run(FAILS=fails)
    assert result.returncode != 0
    assert "it failed" in result.stderr
    assert len(build_.calls) == count


@pytest.fixture
def registry() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    # What moto knows is the process's: other tests' repositories too.
    forget_accounts()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.mark.size("all")
def test_the_real_aws_cli_tells_whether_a_tag_is_there(tmp_path: Path, registry: str):
    credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    variables = {**credentials, "AWS_ENDPOINT_URL": registry, "AWS_DEFAULT_REGION": "eu-west-1"}
    build_ = Build(tmp_path, programs=("docker",))
    missing = build_.run(**variables)
    assert missing.returncode != 0
    assert "RepositoryNotFoundException" in missing.stderr
    ecr = boto3.client(
        "ecr",
        endpoint_url=registry,
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106  # moto's
    )
    ecr.create_repository(repositoryName="slipway/tensorrt")
    assert build_.run(**variables).returncode == 0
    assert build_.calls[-1] == build(BASE)
    built = len(build_.calls)
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"digest": f"sha256:{'0' * 64}", "size": 1},
        "layers": [],
    }
    ecr.put_image(
        repositoryName="slipway/tensorrt",
        imageManifest=json.dumps(manifest),
        imageTag=URI.rpartition(":")[2],
    )
    again = build_.run(**variables)
    assert (again.returncode, again.stdout) == (
        0, f"{URI} is there already: nothing to build.\n",
    )  # fmt: skip
    assert len(build_.calls) == built
