"""The throw-away project that is deployed: its names, its files and its image."""

import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import Kind, UserError, did_you_mean
from slipway.facts.images import UnknownRegionError, image

ROOT = Path(__file__).resolve().parents[2]
MODEL = "verify-aws"
# The second endpoint, which only `--deep` deploys.
QUEUE_MODEL = "verify-queue"
ENVIRONMENT = "aws"
# No project without a name, or with another name, has names that begin like these.
PROJECT = "verify"
DEFAULT_INSTANCE_TYPE = "ml.m5.large"
DEFAULT_OTHER_TYPE = "ml.m5.xlarge"

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
# Two minutes of values, and the minutes that CloudWatch takes to show them.
ROLLOUT_WAIT_SECONDS = 300
TAG = "by-verify-aws"

# Each has a field of `str.format` for each value that a run chooses.
_CONFIG, _QUEUE_CONFIG = (
    Path(__file__).with_name(name).read_text("utf-8") for name in ("config.yaml", "queue.yaml")
)


@dataclass(frozen=True)
class Settings:
    """The settings of the endpoint that a run changes.

    Args:
        latency: threshold of the alarm on latency, in milliseconds.
        instance_count: instances, and the most that autoscaling may start.
        target_invocations: load of an instance that autoscaling holds.
        fault: the model's fault on purpose: none, it cannot start, or all its requests fail.
        rollout_wait_seconds: how long a rollout watches its alarms; None without a rollout.
    """

    instance_type: str
    latency: int = FIRST_LATENCY
    instance_count: int = 1
    target_invocations: int = 600
    fault: Literal["none", "start", "requests"] = "none"
    rollout_wait_seconds: int | None = None
    tag: str | None = None


@dataclass(frozen=True)
class Target:
    """The endpoint to deploy, and the second one of `--deep`.

    Args:
        artifact_key_arn: the key of an earlier run's bucket, which the foundation takes; None if
            there is no such bucket, and the foundation creates a key.
        other_type: the instance type that `--deep` changes to; None without that option.
        subnet_ids: subnets of the second endpoint; empty without a network.
    """

    account: str
    region: str
    instance_type: str
    artifact_key_arn: str | None = None
    other_type: str | None = None
    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()

    @property
    def environments(self) -> dict[str, Any]:
        place = {"account": self.account, "region": self.region}
        key = {} if self.artifact_key_arn is None else {"artifact_key_arn": self.artifact_key_arn}
        return {"project": PROJECT, ENVIRONMENT: {**place, **key}}

    @property
    def environment(self) -> Environment:
        values = self.environments[ENVIRONMENT]
        return Environment.model_validate({"name": ENVIRONMENT, "project": PROJECT, **values})

    @property
    def endpoint(self) -> str:
        return self.environment.stack_name(MODEL)

    @property
    def queue_endpoint(self) -> str:
        return self.environment.stack_name(QUEUE_MODEL)

    @property
    def queue_bucket(self) -> str:
        return f"{QUEUE_MODEL}-{self.account}-{self.region}"

    @property
    def foundation(self) -> str:
        return self.environment.stack_name("foundation")


def assembly(model: str) -> str:
    """Returns the folder of the synthesised stacks of a model, beside the foundation's."""
    return f"{model}.out"


def image_uri(region: str) -> str:
    """Returns the image of a region; raises `UserError` if there is none."""
    try:
        facts = replace(image(*_REGISTRY, region), tag=IMAGE_TAG)
    except UnknownRegionError as error:
        raise UserError.of(
            Code.UNKNOWN_REGION,
            f"the region {region!r} is not known",
            f"{did_you_mean(region, error.known)}Name another one with `--region`.",
            kind=Kind.VALUE,
        ) from None
    if facts.uri is None or facts.domain_suffix not in _SUFFIXES:
        raise UserError.of(
            Code.IMAGE_NOT_IN_REGION,
            f"AWS publishes no image {facts.repository}:{IMAGE_TAG} that a custom container may "
            f"name in {region}",
            "Name another region with `--region`.",
        )
    return facts.uri


def write_project(folder: Path, target: Target) -> None:
    """Writes the project into a folder; files of an earlier run are removed."""
    for name in ("model", "model_configs", assembly(MODEL), assembly(QUEUE_MODEL)):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "model_configs").mkdir(parents=True)
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(__file__).with_name("model"), folder / "model", ignore=without)
    for name in ("app.py", "cdk.json"):
        shutil.copy2(ROOT / name, folder / name)
    (folder / "environments.yaml").write_text(yaml.safe_dump(target.environments), "utf-8")
    write_config(folder, target, Settings(target.instance_type))
    if target.other_type is not None:
        _write_queue_config(folder, target)


def write_config(folder: Path, target: Target, settings: Settings) -> None:
    names = {"model": MODEL, "image_uri": image_uri(target.region)}
    text = _CONFIG.format(**names, **asdict(settings))
    if settings.rollout_wait_seconds is not None:
        text += f"\nrollout:\n  wait_seconds: {settings.rollout_wait_seconds}\n"
    if settings.tag is not None:
        text += f"\ntags:\n  verified: {settings.tag}\n"
    (folder / "model_configs" / f"{MODEL}.yaml").write_text(text, "utf-8")


def _write_queue_config(folder: Path, target: Target) -> None:
    vpc = (
        f"  vpc:\n    subnet_ids: {json.dumps(target.subnet_ids)}\n"
        f"    security_group_ids: {json.dumps(target.security_group_ids)}\n"
    )
    text = _QUEUE_CONFIG.format(
        model=QUEUE_MODEL,
        image_uri=image_uri(target.region),
        instance_type=target.instance_type,
        bucket=target.queue_bucket,
        vpc=vpc if target.subnet_ids else "",
    )
    (folder / "model_configs" / f"{QUEUE_MODEL}.yaml").write_text(text, "utf-8")
