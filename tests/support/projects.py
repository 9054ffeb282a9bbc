"""Projects to test with: a config that is right, and folders made of it."""

import copy
import functools
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.base import UnknownValueError
from slipway.config.sections.network import Network
from slipway.errors import UserError
from slipway.facts.images import UnknownVersionError
from slipway.planning.deployment import Deployment
from slipway.planning.families import deployment_of
from slipway.planning.lock import (
    Lock,
    LockedArtifact,
    LockedPart,
    inputs_digest,
)
from slipway.project import Project

DIGEST = "ab" * 32
OTHER_DIGEST = "ba" * 32
IMAGE_DIGESTS = {
    "lmi": "fedcba9876543210",
    "tensorrt": "0123456789abcdef",
    "triton": "00112233445566aa",
}

CONFIG = """\
name: NAME
description: A model to test with

model:
  family: gpt2
  parameters: 124439808

serving:
  container: tensorrt
  max_batch_size: 8
  max_input_tokens: 64
  max_new_tokens: 42
  default_new_tokens: 12

artifacts:
  sample:
    path: samples/tiny
  release:
    path: build/tiny
    target: sm75

endpoint:
  instances: [ml.g4dn.xlarge]
  instance_count: 2
  model_data_download_timeout_seconds: 600
  container_startup_health_check_timeout_seconds: 600

alarms:
  model_latency_p99_milliseconds: 600
"""

ENVIRONMENTS = """\
local:
  account: "123456789012"
  region: us-east-1
  artifacts: sample
production:
  account: "210987654321"
  region: eu-west-1
  notification_emails: [on-call@example.com]
"""

LOCAL = Environment(name="local", account="123456789012", region="us-east-1", artifacts="sample")
PRODUCTION = Environment(
    name="production",
    account="210987654321",
    region="eu-west-1",
    artifacts="release",
    notification_emails=("on-call@example.com",),
)
# Production, with a customer key for its log groups.
ENCRYPTED = PRODUCTION.model_copy(update={"name": "encrypted", "log_key": "artifact"})

# Production in a VPC, for which the foundation makes the security group and VPC endpoints. Captured
# data may lie in the artifact bucket.
NETWORKED = PRODUCTION.model_copy(
    update={
        "name": "networked",
        "captured_data_days": 30,
        "network": Network(
            vpc_id="vpc-0a1b2c3d",
            subnet_ids=("subnet-0a1b2c3d", "subnet-4e5f6a7b"),
            vpc_endpoints=("s3", "ecr", "logs", "monitoring", "sts"),
            route_table_ids=("rtb-0a1b2c3d",),
        ),
    }
)


def config_text(name: str, *edits: tuple[str, str]) -> str:
    """Returns the YAML of a config that is right, after replacing one text by another."""
    text = CONFIG.replace("NAME", name)
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    return text


# What an LMI container serves: none of them takes a compiled model.
CHECKPOINT = {"source": "s3", "uri": "s3://my-models/tiny/"}


def model_config(name: str = "tiny", **sections: Any) -> ModelConfig:
    """Returns a config; a mapping is merged into its section, None removes the section."""
    content = _parsed(config_text(name))
    if (sections.get("serving") or {}).get("container") == "lmi":
        content["artifacts"] |= {"release": None, "weights": CHECKPOINT}
    for section, value in sections.items():
        # Another container has other fields: nothing of the old one's is left.
        merges = not (isinstance(value, Mapping) and "container" in value)
        if merges and isinstance(value, Mapping) and isinstance(content.get(section), dict):
            content[section] |= value
        elif value is None:
            content.pop(section, None)
        else:
            content[section] = value
    return ModelConfig.model_validate(content)


def _parsed(text: str) -> dict[str, Any]:
    """Reads YAML; thousands of tests read the same."""
    content: dict[str, Any] = copy.deepcopy(_read_once(text))
    return content


# Any: YAML.
@functools.cache
def _read_once(text: str) -> Any:
    return yaml.safe_load(text)


def lock_for(
    config: ModelConfig,
    *,
    sets: Collection[str] = ("sample", "release"),
    variant: str | None = None,
) -> Lock:
    lock = Lock()
    for name in sets:
        deployment = deployment_of(config, LOCAL if name == "sample" else PRODUCTION, variant)
        lock = lock.with_artifact(deployment, _locked(deployment))
    return lock


def lock_variants(root: Path, name: str, environment: str) -> None:
    """Locks the own models of a config's variants, beside what is locked already."""
    project = Project(root)
    path, variants = project.lock_path(name), {}
    for variant, own in project.config(name, environment).variants.items():
        variants |= lock_for(own.config, variant=variant).variants or {}
    lock = project.lock(name).model_copy(update={"variants": variants})
    path.write_text(lock.render(), encoding="utf-8")


def _locked(deployment: Deployment) -> LockedArtifact:
    config, is_release = deployment.config, deployment.deploys_release
    name = "release" if is_release else "sample"
    part = LockedPart(
        # A fallback type's own model has other files; no other variant has a dot in its name.
        digest=OTHER_DIGEST if "." in (deployment.variant or "") else DIGEST,
        size_bytes=4_606_433,
        file_count=6,
        source="samples/tiny" if name == "sample" else "build/tiny",
        target="cpu" if name == "sample" else "sm75",
    )
    try:
        digest = inputs_digest(deployment)
    except (UnknownVersionError, UnknownValueError):
        # Such a config was never published.
        digest = DIGEST
    if config.adapter_of is not None:
        archive = part.model_copy(update={"file_count": 1, "target": "any"})
        return LockedArtifact(inputs_digest=digest, weights=archive, compiled=archive, lora_rank=16)
    if config.serving.container == "lmi" and name == "release":
        weights = part.model_copy(update={"digest": "cd" * 32, "size_bytes": 15_231_233_024})
        code = part.model_copy(update={"size_bytes": 482, "file_count": 1, "target": "any"})
        compiled = None
        if deployment.is_compiled:
            made = {
                "digest": "ef" * 32,
                "target": deployment.compile_target or "sm75",
                "source": f"training job compile-{config.name}-abababababab",
                "compiler": "DeepSpeed of djl-deepspeed 0.27.0",
            }
            compiled = weights.model_copy(update=made)
        packaged = deployment.has_code
        return LockedArtifact(
            inputs_digest=digest,
            weights=weights,
            compiled=compiled,
            code=code if packaged else None,
        )
    if deployment.is_compiled:
        update = {
            "source": f"training job compile-{config.name}-abababababab",
            "target": deployment.compile_target or "sm75",
            "compiler": "tensorrt 10.13",
        }
        weights = part.model_copy(update={"digest": "cd" * 32, "target": "any"})
        return LockedArtifact(
            inputs_digest=digest, weights=weights, compiled=part.model_copy(update=update)
        )
    return LockedArtifact(inputs_digest=digest, compiled=part)


def write_project(
    root: Path,
    models: Mapping[str, str],
    *,
    published: Collection[str] = (),
    environments: str = ENVIRONMENTS,
) -> Path:
    """Writes a project from texts by file stem; the published models get a lock."""
    configs = root / "model_configs"
    configs.mkdir(parents=True)
    (root / "environments.yaml").write_text(environments, encoding="utf-8")
    for name, text in models.items():
        (configs / f"{name}.yaml").write_text(text, encoding="utf-8")
    for name in published:
        config = ModelConfig.model_validate(yaml.safe_load(models[name]))
        (configs / f"{name}.lock.json").write_text(lock_for(config).render(), encoding="utf-8")
    for folder in ("encoders", "jobs", "serving", "tensorrt", "triton", "neuron", "lmi/handler"):
        source = root / "containers" / folder / "main.py"
        source.parent.mkdir(parents=True)
        source.write_text(f"# {folder}\n", encoding="utf-8")
    # What a folder that replaces Slipway's needs; see `slipway.image_sources`.
    for name in ("", "encoders", "jobs", "serving", "tensorrt", "triton", "neuron", "lmi/handler"):
        (root / "containers" / name / "__init__.py").touch()
    for family in ("tensorrt", "triton", "neuron"):
        (root / "containers" / family / "__main__.py").touch()
    for family in ("tensorrt", "triton", "neuron", "lmi"):
        dockerfile = root / "containers" / family / "Dockerfile"
        dockerfile.write_text("FROM scratch\n", encoding="utf-8")
    sample = root / "samples" / "tiny"
    sample.mkdir(parents=True)
    (sample / "config.json").write_text("{}", encoding="utf-8")
    (sample / "model.onnx").write_bytes(bytes(range(256)) * 16)
    return root


def refusal(call: Callable[..., object], *arguments: Any, **options: Any) -> UserError:
    """Returns the report that a call ends with."""
    with pytest.raises(UserError) as caught:
        call(*arguments, **options)
    return caught.value


def write_files(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes files by path below a folder, with the folders that they need; returns the folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def messages(error: UserError) -> list[str]:
    return [problem.message for problem in error.problems]
