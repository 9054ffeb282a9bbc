"""The throw-away project that is deployed: its names, its files and its image."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import Kind, Problem, UserError, nearest
from slipway.facts.images import UnknownRegionError, image

ROOT = Path(__file__).resolve().parents[2]
MODEL = "verify-aws"
ENVIRONMENT = "aws"
# No project without a name, or with another name, has names that begin like these.
PROJECT = "verify"
DEFAULT_INSTANCE_TYPE = "ml.m5.large"

# AWS's image of DJL Serving for CPUs. It is in AWS's list of images (aws/deep-learning-containers
# at e0ecedea6a of 2026-08-21, docs/src/data/djl-inference/0.36-cpu.yml). DJL's own tests deploy
# builds of it to real-time endpoints (deepjavalibrary/djl-serving, branch 0.36.0-lmi18-dlc,
# tests/integration/sagemaker-ml-endpoint-tests.py). By serving/docker of that branch it starts
# `djl-serving` on /opt/ml/model, takes SAGEMAKER_BIND_TO_PORT, and has Python 3.11 for handlers.
IMAGE_TAG = "0.36.0-cpu-full"
# A version of the same registry's images whose accounts and regions the facts know.
_REGISTRY = ("djl-lmi", "0.36.0")
# The form that `serving.image_uri` of a custom container may have.
_SUFFIXES = ("amazonaws.com", "amazonaws.com.cn")

# Milliseconds of the alarm on latency: in the first deployment, and after the change.
FIRST_LATENCY = 2000
CHANGED_LATENCY = 1500

# Has a field of `str.format` for each value that a run chooses.
_CONFIG = Path(__file__).with_name("config.yaml").read_text("utf-8")


@dataclass(frozen=True)
class Target:
    """The endpoint to deploy.

    Args:
        account: AWS account.
        region: AWS region.
        instance_type: type of the endpoint's only instance.
        artifact_key_arn: the key of an earlier run's bucket, which the foundation takes; None if
            there is no such bucket, and the foundation creates a key.
    """

    account: str
    region: str
    instance_type: str
    artifact_key_arn: str | None = None

    @property
    def environment(self) -> Environment:
        """Returns the environment, as environments.yaml has it."""
        return Environment.model_validate(
            {
                "name": ENVIRONMENT,
                "project": PROJECT,
                "account": self.account,
                "region": self.region,
                "artifact_key_arn": self.artifact_key_arn,
            }
        )

    @property
    def endpoint(self) -> str:
        """Returns the name of the endpoint and of its stack."""
        return self.environment.stack_name(MODEL)

    @property
    def foundation(self) -> str:
        """Returns the name of the foundation's stack."""
        return self.environment.stack_name("foundation")


def image_uri(region: str) -> str:
    """Returns the image of a region.

    Raises:
        UserError: AWS publishes no image there, or Slipway does not know the region.
    """
    try:
        facts = image(*_REGISTRY, region)
    except UnknownRegionError as error:
        guess = nearest(region, error.known)
        hint = f" Did you mean {guess}?" if guess else ""
        raise UserError.of(
            Code.UNKNOWN_REGION,
            f"the region {region!r} is not known",
            f"Name another one with `--region`.{hint}",
            kind=Kind.VALUE,
        ) from None
    if facts.account is None or facts.domain_suffix not in _SUFFIXES:
        raise UserError.of(
            Code.IMAGE_NOT_IN_REGION,
            f"AWS publishes no image {facts.repository}:{IMAGE_TAG} that a custom container may "
            f"name in {region}",
            "Name another region with `--region`.",
        )
    registry = f"{facts.account}.dkr.ecr.{region}.{facts.domain_suffix}"
    return f"{registry}/{facts.repository}:{IMAGE_TAG}"


def write_project(folder: Path, target: Target) -> None:
    """Writes the project into a folder; files of an earlier run are removed.

    Raises:
        UserError: the folder cannot be written.
    """
    try:
        for name in ("model", "model_configs", "cdk.out"):
            shutil.rmtree(folder / name, ignore_errors=True)
        (folder / "model_configs").mkdir(parents=True)
        shutil.copytree(
            Path(__file__).parent / "model",
            folder / "model",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        for name in ("app.py", "cdk.json"):
            shutil.copy2(ROOT / name, folder / name)
        lines = [
            f"project: {PROJECT}",
            f"{ENVIRONMENT}:",
            f'  account: "{target.account}"',
            f"  region: {target.region}",
        ]
        if target.artifact_key_arn is not None:
            lines.append(f"  artifact_key_arn: {target.artifact_key_arn}")
        (folder / "environments.yaml").write_text("\n".join([*lines, ""]), "utf-8")
        write_config(folder, target, FIRST_LATENCY)
    except OSError as error:
        message = f"{folder} cannot be written: {error.strerror}"
        raise UserError(
            [Problem(Code.UNUSABLE_FOLDER, Kind.STATE, message, "Name another with `--folder`.")]
        ) from None


def write_config(folder: Path, target: Target, latency: int) -> None:
    """Writes the model's config.

    Args:
        folder: the project.
        target: the endpoint to deploy.
        latency: threshold of the alarm on latency, in milliseconds.
    """
    text = _CONFIG.format(
        model=MODEL,
        image_uri=image_uri(target.region),
        instance_type=target.instance_type,
        latency=latency,
    )
    (folder / "model_configs" / f"{MODEL}.yaml").write_text(text, "utf-8")
