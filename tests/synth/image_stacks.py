"""Projects whose models need images, and the stacks that build them."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from slipway.project import Project
from tests.support.projects import ENVIRONMENTS, config_text, write_project
from tests.synth.assemblies import Assembly, synthesised

STACK = "image-tensorrt"
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


def make_project(
    root: Path,
    models: Mapping[str, str] = MODELS,
    published: Collection[str] = ("newest", "volta"),
    **keywords: Any,
) -> Project:
    present = [name for name in published if name in models]
    return Project(write_project(root, models, published=present, **keywords))


def synthesise(
    project: Project, outdir: Path, *models: str, validates: bool = False, **keywords: Any
) -> Assembly:
    chosen = {"environment": "production", "models": models or ("*",), **keywords}
    return synthesised(project, outdir, validates=validates, **chosen)


def requests(assembly: Assembly, stack: str) -> list[tuple[str, str, str]]:
    found = assembly.resources(stack, "Custom::SlipwayImage").values()
    return [
        tuple(resource["Properties"][name] for name in ("ImageUri", "BaseImage", "Target"))
        for resource in found
    ]


def pulled(assembly: Assembly, stack: str) -> list[str]:
    """Lists the repositories that a stack's builds may pull from."""
    return [
        statement["Resource"]
        for role in assembly.resources(stack, "AWS::IAM::Role").values()
        for policy in role["Properties"]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Sid"] == "PullBases"
    ]


def edited(text: str, *edits: tuple[str, str]) -> str:
    """Returns a text in which each edit's first part, which is there once, is the second part."""
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def sources(assembly: Assembly) -> str:
    location: str = assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"]["Source"][
        "Location"
    ]
    return location
