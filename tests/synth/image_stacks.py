"""Projects whose models need a TensorRT image, and the stack that builds it."""

from pathlib import Path
from typing import Any

from slipway.project import Project
from stacks.assembly import Selection, add_stacks
from tests.support.projects import ENVIRONMENTS, config_text, write_project
from tests.synth.assemblies import Assembly, new_app

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


def sources(assembly: Assembly) -> str:
    location: str = assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"]["Source"][
        "Location"
    ]
    return location
