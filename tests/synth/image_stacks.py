"""A project whose models need images of each family, and the stacks that build them."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from slipway.project import Project
from tests.support.golden_cases import CASES
from tests.support.projects import ENVIRONMENTS, config_text, write_project
from tests.synth.assemblies import Assembly, synthesised

STACK = "image-tensorrt"
REGISTRY = "210987654321.dkr.ecr.eu-west-1.amazonaws.com"
LMI = """\
name: NAME
model:
  family: gptj
  parameters: 6050882784
  layers: 28
  hidden_size: 4096
  attention_heads: 16
serving:
  container: lmi
  framework: djl-deepspeed
  version: 0.23.0
  image: built
  dtype: fp16
artifacts:
  weights:
    source: s3
    uri: s3://my-models/gpt-j/
  size_gb: 12
endpoint:
  instances: [ml.g5.2xlarge]
  container_startup_health_check_timeout_seconds: 1800
  network_isolation: false
alarms:
  model_latency_p99_milliseconds: 2000
"""
TRITON = (CASES / "triton-tensorrt.yaml").read_text("utf-8").replace("triton-tensorrt", "NAME", 1)


def edited(text: str, *edits: tuple[str, str]) -> str:
    """Returns a text in which each edit's first part, which is there once, is the second part."""
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def _named(models: Mapping[str, str]) -> dict[str, str]:
    return {name: text.replace("NAME", name) for name, text in models.items()}


# No image is built on a base for these: each is wrong, or brings an image of its own.
WITHOUT_IMAGE = _named(
    {
        "managed": edited(LMI, ("image: built", "image: managed")),
        "too-old": edited(LMI, ("version: 0.23.0", "version: 0.20.0")),
        "unknown": edited(LMI, ("version: 0.23.0", "version: 0.1.0")),
        "broken": edited(LMI, ("dtype: fp16", "dtyp: fp16")),
        "triton-too-old": edited(TRITON, ('"26.05"', '"24.05"')),
        "triton-own": edited(
            TRITON,
            ('version: "26.05"', 'version: "25.09"\n  repository: triton/own'),
            ("  max_input_tokens: 32\n  max_new_tokens: 32\n", ""),
        ),
    }
)
MODELS = WITHOUT_IMAGE | _named(
    {
        "newest": config_text("newest"),
        "volta": config_text(
            "volta", ("[ml.g4dn.xlarge]", "[ml.p3.2xlarge]"), ("target: sm75", "target: sm70")
        ),
        "fresh": config_text("fresh"),
        "gptj": LMI,
        "gptj-again": LMI,
        "gptj-fresh": edited(
            LMI,
            ("framework: djl-deepspeed", "framework: djl-fastertransformer"),
            ("version: 0.23.0", "version: 0.24.0"),
        ),
        "triton-newest": TRITON,
        "triton-again": TRITON,
        "triton-volta": edited(
            TRITON, ('"26.05"', '"24.09"'), ("ml.g4dn.xlarge", "ml.p3.2xlarge"), ("sm75", "sm70")
        ),
    }
)
PUBLISHED = (
    "newest", "volta", "gptj", "gptj-again", "managed", "triton-newest", "triton-again",
    "triton-volta",
)  # fmt: skip
SHARED = ENVIRONMENTS + (
    'staging:\n  account: "210987654321"\n  region: eu-west-1\n'
    'elsewhere:\n  account: "210987654321"\n  region: us-west-2\n'
)


def make_project(
    root: Path,
    models: Mapping[str, str] = MODELS,
    published: Collection[str] = PUBLISHED,
    environments: str = SHARED,
) -> Project:
    present = [name for name in published if name in models]
    return Project(write_project(root, models, published=present, environments=environments))


def synthesise(project: Project, outdir: Path, *models: str, **keywords: Any) -> Assembly:
    chosen = {"environment": "production", "models": models or ("*",), **keywords}
    return synthesised(project, outdir, **chosen)


def requests(assembly: Assembly, stack: str) -> list[tuple[str, str, str]]:
    found = assembly.resources(stack, "Custom::SlipwayImage").values()
    return [
        tuple(resource["Properties"][name] for name in ("ImageUri", "BaseImage", "Target"))
        for resource in found
    ]


def statements(assembly: Assembly, stack: str, service: str) -> dict[str, dict[str, Any]]:
    """Returns the rights of the role that a service assumes, by their names."""
    (role,) = (
        resource["Properties"]
        for resource in assembly.resources(stack, "AWS::IAM::Role").values()
        if service in str(resource["Properties"]["AssumeRolePolicyDocument"])
    )
    assert "ManagedPolicyArns" not in role
    (policy,) = role["Policies"]
    return {each["Sid"]: each for each in policy["PolicyDocument"]["Statement"]}


def sources(assembly: Assembly) -> str:
    location: str = assembly.only(STACK, "AWS::CodeBuild::Project")["Properties"]["Source"][
        "Location"
    ]
    return location
