"""A plan as a person reads it: a label and a value on each line."""

from collections.abc import Iterator

from slipway.cli.cost import describe_cost, describe_dashboard
from slipway.cli.output import as_lines, human_size
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.config.sections.endpoint import AsyncInference
from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.config.sections.recording import DataCapture, Metrics
from slipway.config.sections.scale_to_zero import CopySchedule, ScaleToZero
from slipway.config.sections.scaling import Autoscaling, Schedule
from slipway.planning.artifact_place import CapturePlace
from slipway.planning.component import ComponentPlan
from slipway.planning.consequences import as_text
from slipway.planning.memory_estimate import MemoryEstimate, counted
from slipway.planning.plan import ArtifactPlan, DeploymentPlan, ServedModel, VariantPlan
from slipway.planning.resources import resources_of
from slipway.planning.rollout import describe_rollout
from slipway.planning.vpc import VpcPlan

_TOLD_ALARMS = ("model_latency_p99", "server_error_rate")


def describe_plan(plan: DeploymentPlan) -> str:
    return as_lines(plan_rows(plan))


def plan_rows(plan: DeploymentPlan) -> list[tuple[str, str]]:
    if plan.is_adapter:
        rows = [*_adapter(plan), *_safeguards(plan)]
    else:
        rows = [*_endpoint_and_files(plan), *_instances(plan), *_network(plan), *_safeguards(plan)]
    rows += _settings_and_tags(plan)
    for each in plan.defaults:
        place = f"{each.place.path}:{each.place.line}"
        rows.append(("default", f"{each.field}: {as_text(each.value)} ({place})"))
    return rows + [("warning", warning.message) for warning in plan.warnings]


def _endpoint_and_files(plan: DeploymentPlan) -> Iterator[tuple[str, str]]:
    environment = plan.environment
    yield "endpoint", f"{plan.endpoint_name} in {environment.account}/{environment.region}"
    yield from _image_and_files(plan)
    place = plan.artifact_place
    if place.is_isolated:
        key = place.key_arn or f"alias/{place.key_alias}"
        yield "isolated", f"only this model's role reads {place.root}, with the key {key}"
    yield from _partition(plan)


def _image_and_files(served: ServedModel) -> Iterator[tuple[str, str]]:
    yield "image", served.image.uri
    if served.image.base is not None:
        yield (
            "base image",
            served.image.base + ("" if "@" in served.image.base else ", by its tag only"),
        )
    if served.image.private_registry is not None:
        function = served.image.credentials_function_arn
        credentials = "no credentials" if function is None else f"the credentials of {function}"
        yield "registry", f"through the VPC, with {credentials}"
    yield "artifact", _files(served.artifact)
    if served.weights is not None:
        yield "weights", f"{_files(served.weights)}, copied by the container"


def _partition(served: ServedModel) -> Iterator[tuple[str, str]]:
    if served.partition is not None:
        yield (
            "partition",
            f"when published, on {served.partition.instance_type} for {served.partition.target}: "
            f"{' '.join(served.partition.arguments)}",
        )


def _adapter(plan: DeploymentPlan) -> Iterator[tuple[str, str]]:
    environment = plan.environment
    yield "adapter", f"of {plan.host}, whose copies load it: {plan.endpoint_name}"
    yield "endpoint", f"{plan.endpoint_name} in {environment.account}/{environment.region}"
    yield "artifact", _files(plan.artifact)
    yield "cost", f"of instances: in the cost of {plan.host}"


def _files(artifact: ArtifactPlan) -> str:
    size = human_size(artifact.size_bytes)
    about = f"{size}, {counted(artifact.file_count, 'file')}, for {artifact.target}"
    licence = ", its licence accepted" if artifact.accepts_eula else ""
    return f"{artifact.data_uri} ({about if artifact.published else 'not published'}{licence})"


def _instances(plan: DeploymentPlan) -> Iterator[tuple[str, str]]:
    first, settings, scaling = plan.variants[0], plan.config.endpoint, plan.config.autoscaling
    if plan.host is not None:
        yield "instances", f"of the endpoint of {plan.host}: {', or '.join(first.instance_types)}"
    else:
        yield from (("instances", _variant(variant, plan)) for variant in plan.variants)
    for each in plan.overriding:
        names = ", ".join(each.instance_types)
        yield "own model", f"of {names}: published as {plan.config.name}@{each.name}"
    if plan.shadow is not None:
        yield (
            "shadow",
            f"{plan.shadow.machines}, with copies of {100 * plan.shadow.weight:g} % of the "
            "requests",
        )
    if (prefixes := settings.prefix_routing) is not None:
        yield (
            "routing",
            f"by the first {prefixes.prefix_length} bytes of a request; elsewhere from "
            f"{prefixes.concurrency_threshold} requests in flight",
        )
    if settings.capacity_reservation_arn is not None:
        yield "reservation", f"only in the capacity of {settings.capacity_reservation_arn}"
    if first.inference_ami_version is not None and plan.host is None:
        yield "host image", first.inference_ami_version
    yield from _on_accelerators(plan)
    if plan.component is not None:
        yield from _component(plan, plan.component)
    else:
        fixed = "none: a fixed count" if first.serverless is None else "by AWS, with each request"
        yield "autoscaling", _scaling(scaling) if scaling else fixed
    if scaling is not None:
        yield from (("step", text) for text in _steps(scaling))
        if scaling.wakes:
            yield "from zero", "a request in the queue starts 1 instance"
        yield from (("schedule", _schedule(each, "instances")) for each in scaling.schedules)
    if plan.host is None:
        yield "cost", describe_cost(plan.cost)
        if plan.dashboard_name is not None:
            yield "dashboard", plan.dashboard_name + describe_dashboard(plan.cost)
    else:
        yield "cost", f"of instances: in the cost of {plan.host}"
    if first.serverless is not None:
        return
    yield (
        "timeouts",
        f"download {first.model_data_download_timeout_seconds} s, start-up health check "
        f"{first.container_startup_health_check_timeout_seconds} s",
    )
    if plan.host is None:
        size = f"{settings.volume_size_gb} GB" if settings.volume_size_gb else "as the type has"
        key = settings.volume_key_arn
        yield "volume", size + ("" if key is None else f", encrypted with {key}")


def _on_accelerators(served: ServedModel) -> Iterator[tuple[str, str]]:
    if served.neuron is not None:
        yield "neuron", served.neuron.formula
    if served.memory is not None:
        yield "memory", describe_memory(served.memory)


def _own_models(plan: DeploymentPlan) -> Iterator[tuple[str, str]]:
    """Yields, by variants and types, how their own models differ from the endpoint's."""
    shared = set(_of_model(plan))
    for name, own in plan.own_models.items():
        for label, text in _of_model(own):
            if (label, text) not in shared:
                yield name, f"{label} {text}"


def _of_model(served: ServedModel) -> Iterator[tuple[str, str]]:
    yield from _image_and_files(served)
    yield from _partition(served)
    yield from _on_accelerators(served)
    yield from _settings(served)


def _network(plan: DeploymentPlan) -> Iterator[tuple[str, str]]:
    settings = plan.config.endpoint
    yield "isolation", "no outbound network" if settings.network_isolation else "network open"
    if plan.vpc is not None:
        yield "vpc", _vpc(plan.vpc)
    if settings.ssm_access:
        yield "sessions", "of Systems Manager open a shell in the container"
    if (dump := settings.core_dump) is not None:
        yield "core dumps", f"below {_uri(dump.destination)}{_with_key('encrypted', dump.key_arn)}"
    if settings.queue is not None:
        yield from _queue(settings.queue)


def _queue(queue: AsyncInference) -> Iterator[tuple[str, str]]:
    each = queue.max_concurrent_invocations_per_instance
    yield "mode", f"async: a queue, and {each} at a time on each instance"
    yield "requests", f"below {_uri(queue.input)}{_with_key('decrypted', queue.input_key_arn)}"
    yield "answers", f"below {_uri(queue.output)}{_with_key('encrypted', queue.output_key_arn)}"
    failures = queue.failure_output
    yield "failures", f"below {_uri(failures)}" if failures else "no objects"
    topics = {"answers": queue.success_topic_arn, "failures": queue.error_topic_arn}
    for what, arn in topics.items():
        if arn is not None:
            yield "notices", f"of {what} to {arn}{_with_key('encrypted', queue.topic_key_arn)}"


def _uri(prefix: str) -> str:
    return prefix.rstrip("/")


def _with_key(verb: str, arn: str | None) -> str:
    return "" if arn is None else f", {verb} with {arn}"


def _vpc(vpc: VpcPlan) -> str:
    groups = ", ".join(vpc.security_group_ids) or "the foundation's"
    return f"subnets {', '.join(vpc.subnet_ids)}, security group {groups}"


def describe_memory(memory: MemoryEstimate) -> str:
    return f"about {memory.total_gib:.1f} of {memory.room}: {memory.parts}"


def _variant(variant: VariantPlan, plan: DeploymentPlan) -> str:
    text = variant.machines
    if len(plan.variants) > 1:
        share = variant.weight / sum(each.weight for each in plan.variants)
        text += f" ({variant.name}, {share:.0%} of the requests)"
    return text


def _scaling(scaling: Autoscaling) -> str:
    target, unit = _target(scaling)
    return (
        f"{scaling.min_instance_count} to {scaling.max_instance_count} instances at {target:g} "
        f"{unit} each"
    )


def _target(scaling: Autoscaling) -> tuple[float, str]:
    if scaling.target_invocations_per_instance_per_minute is not None:
        return scaling.target_invocations_per_instance_per_minute, "invocations per minute"
    if scaling.target_concurrent_requests_per_instance is not None:
        return scaling.target_concurrent_requests_per_instance, "concurrent requests"
    if scaling.target_gpu_utilization_percent is not None:
        return scaling.target_gpu_utilization_percent, "% use of the GPUs"
    return scaling.target_value, "requests in the queue"


def _steps(scaling: Autoscaling) -> Iterator[str]:
    target, unit = _target(scaling)
    for step in scaling.steps:
        yield (
            f"{counted(step.add_instances, 'instance')} more from "
            f"{step.from_times_target * target:g} {unit} each"
        )


def _component(plan: DeploymentPlan, component: ComponentPlan) -> Iterator[tuple[str, str]]:
    settings = component.settings
    target = (
        f"{settings.target_invocations_per_copy_per_minute:g} invocations per minute each"
        if settings.target_invocations_per_copy_per_minute is not None
        else f"{settings.target_concurrent_requests_per_copy:g} concurrent requests each"
    )
    yield "copies", f"{settings.min_copies} to {settings.max_copies} at {target}"
    yield from (("schedule", _schedule(each, "copies")) for each in settings.schedules)
    shares = [
        (component.accelerators_per_copy, "accelerators"),
        (component.vcpus_per_copy, "virtual processors"),
        (settings.copy_memory_mib, "MiB of main memory"),
    ]
    reserved = ", ".join(f"{amount:g} {unit}" for amount, unit in shares if amount is not None)
    most = settings.max_copy_memory_mib
    yield "each copy", f"reserves {reserved}" + (f", and may use {most} MiB" if most else "")
    yield from _placement(settings)
    # A larger type of a pool may hold more.
    is_pool = len(plan.variants[0].instance_types) > 1
    room = f"{'at least ' if is_pool else ''}{component.copies_per_instance}"
    if plan.guests:
        yield "guests", f"copies of {', '.join(guest.name for guest in plan.guests)} run here too"
    yield (
        "to zero" if component.min_instance_count == 0 else "scaling",
        f"{component.min_instance_count} to {plan.max_instance_count} instances, as the copies "
        f"need; room for {room} copies on each",
    )


def _placement(settings: ScaleToZero) -> Iterator[tuple[str, str]]:
    if settings.placement_strategy is not None:
        yield (
            "placement",
            f"{settings.placement_strategy} within each zone; zones differ by at most "
            f"{settings.max_zone_imbalance or 0}",
        )
    if settings.consolidation is not None:
        yield (
            "consolidation",
            f"{counted(settings.consolidation.max_step_size, 'instance')} at a time, "
            f"{settings.consolidation.cooldown_minutes} min after the last change",
        )
    if settings.cache_model is not None:
        kept = "keeps" if settings.cache_model else "does not keep"
        yield "cache", f"an instance {kept} model data and image for its next copy"


def _schedule(schedule: Schedule | CopySchedule, unit: str) -> str:
    low, high = schedule.bounds
    zone = f" in {schedule.zone_of_expression}" if schedule.zone_of_expression else ""
    return f"{schedule.name}: {low} to {high} {unit} from {schedule.at}{zone}"


def _safeguards(plan: DeploymentPlan) -> Iterator[tuple[str, str]]:
    settings, alarms, environment = plan.config.endpoint, plan.config.alarms, plan.environment
    yield (
        "alarms",
        f"server error rate over {alarms.server_error_rate_percent:g} %, p99 latency over "
        f"{alarms.model_latency_p99_milliseconds:g} ms, for "
        f"{alarms.evaluation_periods_minutes} minutes",
    )
    others = [kind for name, kind in ALARM_KINDS.items() if name not in _TOLD_ALARMS]
    told = [
        f"{kind.field} over {threshold:g}"
        for kind in others
        if (threshold := alarms.threshold(kind)) is not None
    ]
    if told:
        yield "further alarms", ", ".join(told)
    if plan.at_max_capacity is not None:
        unit = "instances" if plan.component is None else "copies"
        yield "at maximum", f"alarm at {plan.at_max_capacity} {unit}"
    if plan.rollout is not None:
        yield from (("rollout", line) for line in describe_rollout(plan.config))
    if settings.termination_protection:
        yield "protection", "the stack cannot be deleted until termination_protection is off"
    if settings.execution_role_arn is not None:
        rights = f"slipway iam {plan.config.name} --execution-role --env {environment.name}"
        yield "role", f"{settings.execution_role_arn}, whose rights `{rights}` prints"
    if environment.permissions_boundary_arn is not None:
        yield "boundary", f"every role is limited by {environment.permissions_boundary_arn}"
    if plan.capture is not None and settings.data_capture is not None:
        yield "captured", _capture(settings.data_capture, plan.capture)
    if settings.metrics is not None:
        yield "metrics", _metrics(settings.metrics)
    key = (
        "" if environment.log_key is None else f", encrypted with {_key_name(environment.log_key)}"
    )
    yield "logs", f"{plan.log_group_name}, kept {settings.log_retention_days} days{key}"
    counted = (
        f"{count} x {name}" if count > 1 else name
        for name, count in sorted(resources_of(plan).items())
    )
    yield "resources", ", ".join(counted).replace("AWS::", "")


def _capture(capture: DataCapture, place: CapturePlace) -> str:
    nouns = {"input": "requests", "output": "answers"}
    captured = " and ".join(nouns[each] for each in capture.capture)
    key = "" if place.key is None else f", encrypted with {_key_name(place.key)}"
    return f"{capture.sampling_percent} % of the {captured}, to {place.uri}{key}"


def _metrics(metrics: Metrics) -> str:
    each = " and of each" if metrics.enhanced else ""
    detailed = "with" if metrics.detailed_observability else "without"
    return (
        f"of all instances{each}, every {metrics.publish_frequency_seconds} s, {detailed} detailed "
        "observability"
    )


def _key_name(key: str) -> str:
    return "the artifact key" if key == ARTIFACT_KEY else key


def _settings(served: ServedModel) -> Iterator[tuple[str, str]]:
    for key, value in served.serving_properties.items():
        yield "property", f"{key}={value}"
    for key, value in sorted(served.container_environment.items()):
        yield f"env {key}", value


def _settings_and_tags(plan: DeploymentPlan) -> Iterator[tuple[str, str]]:
    yield from _settings(plan)
    yield from _own_models(plan)
    for key, value in sorted(plan.tags.items()):
        yield f"tag {key}", value
