"""Joins config, facts, environment, lock and image digests into one plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.serving import CustomServing, TensorRTServing
from slipway.errors import Kind, Problem, UserError
from slipway.facts.images import default_inference_ami
from slipway.facts.instances import InstanceFacts
from slipway.planning.advice import ADVICE, Subject
from slipway.planning.lock import Lock, inputs_digest
from slipway.planning.memory import estimate
from slipway.planning.plan import (
    AlarmPlan,
    ArtifactPlan,
    AutoscalingPlan,
    DeploymentPlan,
    ImagePlan,
    VariantPlan,
)
from slipway.planning.rules import RULES
from slipway.planning.rules.situation import Situation, situation_of, variants_of
from slipway.planning.support import unsupported

# A prefix that no artifact can have (digests are hexadecimal) and every linter takes.
UNPUBLISHED_DIGEST = "unpublished"


def resolve(
    config: ModelConfig,
    instances: Mapping[str, InstanceFacts],
    environment: Environment,
    lock: Lock,
    image_digests: Mapping[str, str],
    *,
    allow_unpublished: bool = False,
) -> DeploymentPlan:
    """Makes the plan of one model in one environment.

    Args:
        config: a valid config.
        instances: facts of the instance types, by name.
        environment: where to deploy.
        lock: what was published.
        image_digests: fingerprint of the sources of each image we build, by container family.
        allow_unpublished: plan with an artifact that does not exist, for reading and linting.

    Raises:
        UserError: every incompatibility; fields are named, places are the caller's to fill in.
    """
    situation = situation_of(config, instances, environment)
    problems = [problem for rule in RULES for problem in rule(situation)]
    problems += unsupported(config)
    artifact = _artifact(config, environment, lock, allow_unpublished=allow_unpublished)
    no_source = any(problem.field == ("artifacts",) for problem in problems)
    # Without a source there is nothing to publish yet: one remedy at a time.
    if isinstance(artifact, Problem) and not no_source:
        problems.append(artifact)
    if problems or isinstance(artifact, Problem):
        raise UserError(problems)
    full_name = f"{config.name}-{environment.name}"
    return DeploymentPlan(
        name=config.name,
        description=config.description,
        environment=environment.name,
        account=environment.account,
        region=environment.region,
        stack_name=full_name,
        endpoint_name=full_name,
        image=_image(config, environment, image_digests),
        artifact=artifact,
        container_environment=_container_environment(config),
        network_isolation=config.endpoint.network_isolation,
        variants=tuple(_variants(config)),
        routing_strategy=config.endpoint.routing.upper(),
        memory=estimate(config, situation.instance),
        autoscaling=_autoscaling(config),
        alarms=_alarms(situation),
        log_group_name=f"/aws/sagemaker/Endpoints/{full_name}",
        log_retention_days=config.endpoint.log_retention_days,
        tags={
            **config.tags,
            "slipway:model": config.name,
            "slipway:environment": environment.name,
        },
        warnings=tuple(
            warning for advise in ADVICE for warning in advise(Subject(situation, artifact))
        ),
    )


def _artifact(
    config: ModelConfig, environment: Environment, lock: Lock, *, allow_unpublished: bool
) -> ArtifactPlan | Problem:
    locked = lock.artifact(environment.artifacts)
    if locked is not None and locked.inputs_digest == inputs_digest(config, environment.artifacts):
        part = locked.compiled
        return ArtifactPlan(
            environment.artifact_bucket, part.digest, part.size_bytes, part.file_count,
            part.target, published=True,
        )  # fmt: skip
    if allow_unpublished:
        return ArtifactPlan(
            environment.artifact_bucket, UNPUBLISHED_DIGEST, 0, 0, "none", published=False
        )
    state = (
        f"the {environment.artifacts} was never published"
        if locked is None
        else f"the config changed after the {environment.artifacts} was published"
    )
    return Problem(
        Kind.STATE,
        state,
        f"Run `slipway publish {config.name} --env {environment.name}` and commit the lock file "
        f"model_configs/{config.name}.lock.json.",
        ("artifacts", environment.artifacts),
    )


def _image(
    config: ModelConfig, environment: Environment, image_digests: Mapping[str, str]
) -> ImagePlan:
    serving = config.serving
    if not isinstance(serving, CustomServing):
        repository = f"slipway/{serving.container}"
        tag = image_digests[serving.container]
        return ImagePlan(environment.account, environment.region, repository, tag)
    registry, _, path = serving.image_uri.partition("/")
    account, _, _, region, *_ = registry.split(".")
    repository, separator, tag = path.partition("@")
    if not separator:
        repository, _, tag = path.partition(":")
    return ImagePlan(account, region, repository, tag)


def _variants(config: ModelConfig) -> Iterator[VariantPlan]:
    endpoint = config.endpoint
    for _, name, variant in variants_of(config):
        types = (variant.instances if variant else None) or endpoint.instances
        yield VariantPlan(
            name=name,
            weight=variant.weight if variant else 1.0,
            instance_types=types,
            instance_provision_timeout_seconds=(
                endpoint.instance_provision_timeout_seconds if len(types) > 1 else None
            ),
            instance_count=(variant.instance_count if variant else None) or endpoint.instance_count,
            model_data_download_timeout_seconds=endpoint.model_data_download_timeout_seconds,
            container_startup_health_check_timeout_seconds=(
                endpoint.container_startup_health_check_timeout_seconds
            ),
            volume_size_gb=endpoint.volume_size_gb,
            inference_ami_version=_ami(config),
        )


def _ami(config: ModelConfig) -> str | None:
    """What the config says, or what the image's CUDA needs."""
    serving, chosen = config.serving, config.endpoint.inference_ami_version
    if chosen is None and isinstance(serving, CustomServing) and serving.cuda_version:
        return default_inference_ami(serving.cuda_version)
    return chosen


def _alarms(situation: Situation) -> AlarmPlan:
    alarms, accelerator = situation.config.alarms, situation.instance.accelerator
    overhead = alarms.overhead_latency_p99_milliseconds
    return AlarmPlan(
        server_error_rate_percent=alarms.server_error_rate_percent,
        model_latency_p99_microseconds=alarms.model_latency_p99_milliseconds * 1000,
        overhead_latency_p99_microseconds=None if overhead is None else overhead * 1000,
        client_error_rate_percent=alarms.client_error_rate_percent,
        memory_utilization_percent=alarms.memory_utilization_percent,
        disk_utilization_percent=alarms.disk_utilization_percent,
        gpu_memory_utilization_percent=alarms.gpu_memory_utilization_percent,
        gpu_count=accelerator.count if accelerator and accelerator.kind == "gpu" else 0,
        evaluation_periods_minutes=alarms.evaluation_periods_minutes,
    )


def _container_environment(config: ModelConfig) -> dict[str, str]:
    serving = config.serving
    if isinstance(serving, CustomServing):
        return dict(serving.environment)
    if not isinstance(serving, TensorRTServing):
        return {}  # refused above: it is not supported yet
    return {
        "SLIPWAY_DEFAULT_NEW_TOKENS": str(serving.default_new_tokens),
        "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": str(serving.max_batch_delay_milliseconds),
        "SLIPWAY_MAX_BATCH_SIZE": str(serving.max_batch_size),
        "SLIPWAY_MAX_INPUT_TOKENS": str(serving.max_input_tokens),
        "SLIPWAY_MAX_NEW_TOKENS": str(serving.max_new_tokens),
        "SLIPWAY_MAX_QUEUE_LENGTH": str(serving.max_queue_length),
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": str(serving.request_timeout_seconds),
    }


def _autoscaling(config: ModelConfig) -> AutoscalingPlan | None:
    scaling = config.autoscaling
    if scaling is None:
        return None
    return AutoscalingPlan(
        scaling.min_instance_count,
        scaling.max_instance_count,
        scaling.target_invocations_per_instance_per_minute,
        scaling.target_concurrent_requests_per_instance,
        scaling.scale_in_cooldown_seconds,
        scaling.scale_out_cooldown_seconds,
    )
