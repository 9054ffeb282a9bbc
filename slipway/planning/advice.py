"""Warnings for a reviewer, which stop nothing; each is a function, like the rules."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from slipway.facts.regions import hosted_types, hosting_regions
from slipway.planning.artifacts import has_source
from slipway.planning.asynchronous import ASYNC
from slipway.planning.component import SCALE_TO_ZERO, accelerators_of, component_plan
from slipway.planning.deployment import Deployment
from slipway.planning.memory import estimate
from slipway.planning.plan import ArtifactPlan, PlanWarning
from slipway.planning.rollout import ALL_AT_ONCE, fleet_bounds
from slipway.planning.sizes import (
    ASSUMED_DOWNLOAD_GB_PER_SECOND,
    LARGEST_VOLUME_GB,
    advised_volume_gb,
    artifact_size_gb,
    disk_gb,
    download_seconds,
    short_timeouts,
)

_NEARLY_FULL = 0.9
_PREFIX_INSTANCES = 2  # botocore's documentation of RoutingStrategy, 1.44
_TYPES_WITHOUT_COMPONENTS = ("ml.c5.", "ml.c5d.", "ml.m5.", "ml.m5d.", "ml.p2.")
_REGIONS_WITHOUT_COMPONENTS = (
    *("cn-north-1", "cn-northwest-1", "us-gov-east-1", "us-gov-west-1"),
    *("us-iso-east-1", "us-iso-west-1", "us-isob-east-1"),
)


@dataclass(frozen=True)
class Subject:
    """The config, the plan and the facts that a warning is about."""

    deployment: Deployment
    artifact: ArtifactPlan
    weights: ArtifactPlan | None = None


# Of a plan that no publish could make deployable.
NO_SOURCE = "no-source"

Advice = Callable[[Subject], Iterator[PlanWarning]]


def unpublished(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of an unpublished plan, which is for reading and linting only."""
    if subject.artifact.published:
        return
    environment = subject.deployment.environment
    code, what = "unpublished", "The artifact is not published"
    if not has_source(subject.deployment):
        code = NO_SOURCE
        what = f"There is no {environment.artifacts} to publish, which `{environment.name}` deploys"
    yield PlanWarning(code, f"{what}: SageMaker would refuse this.")


def legacy_image(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of images that AWS no longer develops, because they get no security fixes either."""
    aws = subject.deployment.aws_image
    if aws is None or aws.legacy is None:
        return
    role, living = subject.deployment.supported_replacement
    yield PlanWarning(
        "legacy-image",
        f"{aws.framework} {aws.version}{role} is a legacy image: {aws.legacy.reason}. {living} "
        f"{aws.legacy.framework} {aws.legacy.version}.",
    )


def single_instance(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of a single instance, because it lies in a single zone, or of none at rest."""
    config = subject.deployment.config
    if (copies := config.endpoint.copies) is not None and copies.smallest_count:
        return
    if config.endpoint.capacity is not None:
        return
    if config.endpoint.mode == SCALE_TO_ZERO:
        absent = "copy" if copies is not None and copies.min_instance_count else "instance"
        yield PlanWarning(
            "sleeping-endpoint",
            f"Without requests there is no {absent}. The first request then fails and wakes the "
            "endpoint, which takes minutes. `slipway.client` lets callers wait: "
            "docs/calling-an-endpoint.md.",
        )
        return
    scaling = config.autoscaling
    if (scaling.smallest_count if scaling else config.endpoint.instance_count) != 1:
        return
    where, effect = "", "the endpoint is down"
    if config.endpoint.mode == ASYNC:
        effect = "requests wait"
    if config.endpoint.variants:
        where, effect = " in each variant", "the variant's share of the requests fails"
    text = f"One instance at rest{where}: if it or its zone fails, {effect} meanwhile."
    yield PlanWarning("single-instance", text)


def failures_are_told_to_nobody(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of a queue whose failures are seen in metrics alone, because no caller waits."""
    queue = subject.deployment.config.endpoint.async_inference
    if queue is not None and queue.failure_output is None and queue.error_topic_arn is None:
        yield PlanWarning(
            "async-failures-untold",
            "A request that fails leaves no object and no notice. Set `failure_output`, or "
            "`error_topic_arn`.",
        )


def rollout_hardly_watched(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of steps that are watched for exactly the minutes that the alarms need.

    A step begins in the middle of a minute. A container that never answers fails its first request
    only after SageMaker's 60 seconds.
    """
    config = subject.deployment.config
    rollout, minutes = config.rollout, config.alarms.evaluation_periods_minutes
    advised = 60 * (minutes + 1)
    if rollout.is_guarded and rollout.rollback_alarms and rollout.wait_seconds < advised:
        yield PlanWarning(
            "rollout-hardly-watched",
            f"Each step of the rollout is watched for {rollout.wait_seconds} s, and an alarm needs "
            f"{minutes} whole minutes. A fault at the last step may be seen too late. Set "
            f"`wait_seconds: {advised}`.",
        )


def rollout_step_below_instance(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of a step smaller than one instance, because no source says how SageMaker rounds it."""
    config = subject.deployment.config
    step = config.rollout.step_percent
    # A batch of copies has one at least.
    of_copies = config.endpoint.mode == SCALE_TO_ZERO
    if config.rollout.strategy == ALL_AT_ONCE or step is None or of_copies:
        return
    smallest, _ = fleet_bounds(config)
    if step * smallest < 100:
        yield PlanWarning(
            "rollout-step-below-instance",
            f"A step of {step} % of {smallest} instances is less than one instance. AWS does not "
            "document how SageMaker rounds it, so the real share may be larger.",
        )


def not_listed_in_region(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of a type that is not listed in the region, since not every region hosts all.

    The list follows AWS's prices, which lag behind.
    """
    deployment = subject.deployment
    region = deployment.region
    here = hosted_types(region)
    for name in (instance.name for instance in deployment.instances):
        somewhere = hosting_regions(name)
        if here is not None and somewhere is not None and name not in here:
            yield PlanWarning(
                "type-not-in-region",
                f"{name} is not in AWS's list of hosting types of {region}, so the endpoint may "
                f"fail to start there; it is in the lists of {', '.join(somewhere)}.",
            )


def memory_nearly_full(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of nearly full memory: the estimate has an assumption in it and should be measured.

    A server that limits itself to a share of the memory, as vLLM does, leaves the rest free anyway.
    """
    deployment = subject.deployment
    for instance in deployment.instances:
        memory = estimate(deployment, instance)
        if memory is None:
            continue
        if memory.total_gib > min(memory.available_gib, _NEARLY_FULL * memory.memory_gib):
            yield PlanWarning(
                "memory-nearly-full",
                f"{instance.name} has {memory.room} for an estimated {memory.total_gib:.1f}: "
                f"{memory.parts}.",
            )


def disk_nearly_full(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of a nearly full disk: logs and caches lie on it too.

    The published artifact may also be larger than the config said. A sum above the disk is included
    here, because the rules do not see the published size.
    """
    deployment, endpoint = subject.deployment, subject.deployment.config.endpoint
    size_gb = _stored_gb(subject)
    if size_gb is None:
        return
    for instance in deployment.instances:
        disk = disk_gb(endpoint, instance)
        if disk is None or size_gb <= _NEARLY_FULL * disk:
            continue
        remedy = (
            "Choose a type with a larger local disk."
            if instance.local_nvme_gb or disk >= LARGEST_VOLUME_GB
            else f"Set `volume_size_gb: {advised_volume_gb(size_gb)}`."
        )
        yield PlanWarning(
            "disk-nearly-full",
            f"{instance.name} has {disk} GB of disk for an artifact of {size_gb:.1f} GB. {remedy}",
        )


def volume_key_without_volume(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of types whose disk the volume's key does not encrypt.

    SageMaker takes the key all the same: botocore 1.44, CreateEndpointConfig's KmsKeyId.
    """
    if subject.deployment.config.endpoint.volume_key_arn is None:
        return
    for instance in subject.deployment.instances:
        if instance.local_nvme_gb:
            yield PlanWarning(
                "volume-key-without-volume",
                f"{instance.name} stores the model on its local NVMe disk. AWS encrypts that disk "
                "with a key of the machine's own, and not with `volume_key_arn`.",
            )


def download_may_time_out(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of a download that may time out.

    No source gives SageMaker's rate, so this is no rule; a longer timeout costs nothing.
    """
    size_gb = _stored_gb(subject)
    if size_gb is None:
        return
    for field, seconds, advised in short_timeouts(subject.deployment, size_gb):
        yield PlanWarning(
            "download-may-time-out",
            f"{size_gb:.1f} GB take {download_seconds(size_gb)} s over one connection to S3 "
            f"({ASSUMED_DOWNLOAD_GB_PER_SECOND} GB/s), and `{field}` is {seconds}. Set it to "
            f"{advised}.",
        )


def guest_shares_no_instance(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of a guest whose copies leave no accelerator of an instance to its host."""
    deployment = subject.deployment
    host, section = deployment.config.endpoint.host, deployment.config.endpoint.copies
    if host is None or section is None:
        return
    count = accelerators_of(deployment.instance)
    if count and (section.accelerators_per_copy or count) == count:
        accelerators = "the only accelerator" if count == 1 else f"all {count} accelerators"
        yield PlanWarning(
            "guest-shares-no-instance",
            f"A copy takes {accelerators} of {deployment.instance.name}, so no instance holds "
            f"copies of this model and of {host}. Lower `accelerators_per_copy`, choose a type "
            "with more accelerators, or use an endpoint for each model.",
        )


def prefixes_need_instances(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of a fleet of one instance, where SageMaker does not look at prefixes."""
    deployment = subject.deployment
    config = deployment.config
    component = component_plan(config.endpoint, deployment.instances, config.name)
    most = fleet_bounds(config)[1] if component is None else component.max_instance_count
    if config.endpoint.prefix_routing is not None and most < _PREFIX_INSTANCES:
        yield PlanWarning(
            "prefix-routing-idle",
            f"SageMaker applies `prefix_aware` only where {_PREFIX_INSTANCES} instances can answer "
            f"a request, and there is {most} at most.",
        )


def packed_over_zones(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of copies that are packed, but first balanced over the zones."""
    section = subject.deployment.config.endpoint.copies
    if section is None or section.placement_strategy != "binpack":
        return
    apart, most = section.max_zone_imbalance or 0, min(section.largest_count, 100)
    if apart < most:
        yield PlanWarning(
            "packed-over-zones",
            f"SageMaker first balances copies over the zones, to at most {apart} apart, and packs "
            "them within each zone. Instances of several zones may then run for few copies. Set "
            f"`max_zone_imbalance: {most}` to pack them together.",
        )


def components_may_be_refused(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of places for which AWS's own SDK refuses inference components.

    The API documents no such limits, and no public report tells of the service's own answer.
    Source, read 2026-11-26: the utilities for inference components of sagemaker-serve in
    https://github.com/aws/sagemaker-python-sdk.
    """
    deployment = subject.deployment
    if deployment.config.endpoint.mode != SCALE_TO_ZERO:
        return
    types = [i.name for i in deployment.instances if i.name.startswith(_TYPES_WITHOUT_COMPONENTS)]
    places = [", ".join(types)] if types else []
    if deployment.region in _REGIONS_WITHOUT_COMPONENTS:
        places.append(deployment.region)
    if places:
        yield PlanWarning(
            "components-may-be-refused",
            f"AWS's SDK refuses inference components on {' in '.join(places)}. AWS's API does not "
            "document this.",
        )


def _stored_gb(subject: Subject) -> float | None:
    """Returns what an instance stores, in GB: as published where that is known, else as configured.

    The model data of an LMI deployment has no weights in it: the container copies them.
    """
    stored = subject.weights or subject.artifact
    if stored.published:
        return stored.size_bytes / 1e9
    return artifact_size_gb(subject.deployment)


# Advice on an endpoint as a whole, which a single variant of it says nothing about.
OF_ENDPOINT: tuple[Advice, ...] = (single_instance, rollout_step_below_instance)
