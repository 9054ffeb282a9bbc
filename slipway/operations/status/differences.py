"""How a live endpoint differs from its model's files, setting by setting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipway.access import Access
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.config.sections.endpoint import AsyncInference
from slipway.config.sections.recording import Metrics
from slipway.config.sections.scale_to_zero import CopySchedule
from slipway.config.sections.scaling import Autoscaling, Schedule
from slipway.deployed import calls, fields, scaling
from slipway.deployed.answers import Answer
from slipway.deployed.described import Raw, containers_of
from slipway.deployed.served import image_and_artifact, live_component, mode_of, model_of
from slipway.operations.status.component import copies_of, planned_copies, target_of
from slipway.planning.asynchronous import WAKE_POLICY, topic_types
from slipway.planning.consequences import as_text
from slipway.planning.described_alarms import is_capacity_alarm, kind_of, variant_of
from slipway.planning.plan import DeploymentPlan, VariantPlan

_COPIES = "endpoint.scale_to_zero"
_ENDPOINT_OF = f"{_COPIES}.endpoint_of"
# A guest's config repeats them; the endpoint of its host has them.
_OF_THE_HOST = ("endpoint.instances", "endpoint.inference_ami_version", "endpoint.routing")

# AWS's defaults apply where neither the files nor the account say anything.
_DEFAULT_METRICS = Metrics.model_validate({})

# A setting by its name in the config, or `variable NAME` of the container. None is no setting.
_Settings = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """A setting whose value in the files was not deployed; None where a side does not have it.

    The setting is its name in the model config, or `variable NAME` for a variable of the container,
    with the variant's name where there are several.
    """

    setting: str
    deployed: str | None
    files: str | None


def find_differences(
    plan: DeploymentPlan, access: Access, config_name: str, *, is_protected: bool
) -> tuple[Difference, ...]:
    """Compares an endpoint's configuration, scaling and alarms with a plan, in the config's order.

    The image and the artifact of the first variant are left out: `slipway status` has rows of its
    own for them. Nothing differs where the configuration or its model was deleted, since nothing is
    known then, and for an adapter, whose settings are its base's.
    """
    sagemaker = access.client("sagemaker")
    config = calls.described_config(sagemaker, config_name)
    if config is None or plan.is_adapter:
        return ()
    component = live_component(sagemaker, config, plan.stack_name)
    production: list[Raw] = config["ProductionVariants"]
    model = model_of(sagemaker, production[0], component)
    if model is None:
        return ()
    variants = [item["VariantName"] for item in production]
    weights: dict[str, float] = {}
    if len(variants) > 1:  # they change without another configuration
        live = calls.describe_endpoint(sagemaker, plan.endpoint_name) or {}
        for item in live.get("ProductionVariants", ()):
            weights[item["VariantName"]] = _weight(item["DesiredWeight"])
    others = [
        item
        for item in (*production[1:], *config.get("ShadowProductionVariants", ()))
        if component is None and item["ModelName"] != production[0]["ModelName"]
    ]
    others += [
        {"VariantName": pool["InstanceType"], "ModelName": pool["ModelNameOverride"]}
        for item in (*production, *config.get("ShadowProductionVariants", ()))
        for pool in item.get("InstancePools", ())
        if "ModelNameOverride" in pool
    ]
    deployed = {
        **_model(model, plan),
        **{name: value for item in others for name, value in _other(sagemaker, item).items()},
        "endpoint.mode": mode_of(config),
        "endpoint.termination_protection": is_protected,
        **_alarms(access, plan, variants),
        **(_component(access, component, plan) if component is not None else {}),
        _ENDPOINT_OF: _host(component, plan),
    }
    if plan.host is None:
        deployed |= {**_config(config, plan, weights), **_scaling(access, plan, variants)}
    files = {name: value for name, value in _planned(plan).items() if value is not None}
    names = [*files, *(name for name in deployed if name not in files)]
    return tuple(
        Difference(name, as_text(deployed.get(name)), as_text(files.get(name)))
        for name in names
        if deployed.get(name) != files.get(name)
    )


# The files


def _planned(plan: DeploymentPlan) -> _Settings:
    first = plan.served_by(plan.variants[0])
    found: _Settings = _variables(first.container_environment)
    models = [(each.name, plan.served_by(each)) for each in plan.every_variant]
    models += [
        (name, plan.served_by(each)) for each in plan.overriding for name in each.instance_types
    ]
    for name, served in models:
        if served is not first:
            found |= _of_model(
                served.image.uri, served.artifact.label, served.container_environment, name
            )
    own = ("mode", "network_isolation", "execution_role_arn", "termination_protection")
    found |= _section("endpoint", {each: getattr(plan.config.endpoint, each) for each in own})
    names = [variant.name for variant in plan.variants]
    for variant in plan.variants:
        found |= _of_variant(_planned_variant(plan, variant), variant.name, names)
    if plan.shadow is not None:
        found |= _shadow(plan.shadow.weight, plan.shadow.instance_types, plan.shadow.instance_count)
    if plan.host is None:
        metrics = plan.config.endpoint.metrics or _DEFAULT_METRICS
        found |= _section("endpoint.metrics", dict(metrics))
        if (queue := plan.config.endpoint.queue) is not None:
            found |= _section("endpoint.async_inference", _planned_queue(queue))
    else:
        found = {name: value for name, value in found.items() if name not in _OF_THE_HOST}
    if (component := plan.component) is not None:
        schedules = _planned_schedules(component.settings.schedules)
        found |= _section(_COPIES, {**planned_copies(plan, component), "schedules": schedules})
        found[_ENDPOINT_OF] = plan.host
    return found


def _planned_variant(plan: DeploymentPlan, variant: VariantPlan) -> _Settings:
    settings, autoscaling = plan.config.endpoint, plan.config.autoscaling
    is_fixed = autoscaling is None and plan.component is None and variant.serverless is None
    endpoint: _Settings = {
        "instances": list(variant.instance_types),
        # Where the endpoint scales, its size is not the file's.
        "instance_count": variant.instance_count if is_fixed else None,
        "weight": _weight(variant.weight) if plan.shares_by_weight else None,
    }
    # The rest belongs to each variant, or to the whole plan. What is off is not told.
    for name in fields.VARIANT:
        if name not in endpoint and variant.serverless is None:
            endpoint[name] = getattr(variant, name, getattr(settings, name, None)) or None
    for section in ("prefix_routing", "core_dump"):
        endpoint |= _section(section, dict(getattr(settings, section) or ()))
    sized = settings.capacity and settings.capacity.model_dump(exclude_none=True)
    endpoint |= _section("serverless", sized or {})
    alarms = plan.config.alarms
    thresholds = {kind.field: alarms.threshold(kind) for kind in ALARM_KINDS.values()}
    thresholds["evaluation_periods_minutes"] = alarms.evaluation_periods_minutes
    thresholds["at_max_capacity"] = plan.at_max_capacity is not None or None
    found = _section("endpoint", endpoint) | _section("alarms", thresholds)
    if autoscaling is not None:
        found |= _section("autoscaling", _planned_scaling(autoscaling, variant))
    return found


def _planned_scaling(settings: Autoscaling, variant: VariantPlan) -> _Settings:
    # The load of steps has the metric's unit, which adds up over the GPUs of an instance.
    is_by_gpu = getattr(settings, scaling.GPU_TARGET) is not None
    target = settings.target_value * (variant.gpu_count if is_by_gpu else 1)
    steps = [(each.add_instances, each.from_times_target * target) for each in settings.steps]
    schedules = _planned_schedules(settings.schedules)
    return {**dict(settings), "schedules": schedules, "steps": _steps(steps)}


def _planned_queue(queue: AsyncInference) -> _Settings:
    found = {name: getattr(queue, name) for name in fields.QUEUE}
    for name in ("output", "failure_output"):
        if found[name] is not None:
            found[name] = found[name].rstrip("/")  # as the template has it
    found["include_response_in"] = topic_types(queue.include_response_in) or None
    return found


def _planned_schedules(items: Sequence[Schedule] | Sequence[CopySchedule]) -> list[str] | None:
    texts = [_schedule(each.name, each.at, each.zone_of_expression, each.bounds) for each in items]
    return sorted(texts) or None


# The account


def _model(model: Raw, plan: DeploymentPlan) -> _Settings:
    container = containers_of(model)[0]
    role = model.get("ExecutionRoleArn", "")
    return {
        **_variables(container.get("Environment", {})),
        "endpoint.network_isolation": model.get("EnableNetworkIsolation", False),
        "endpoint.execution_role_arn": None if _is_made(role, plan) else role,
    }


def _other(sagemaker: Any, variant: Raw) -> _Settings:
    """Returns the settings of a variant, or type, that serves another model than the first one."""
    model = model_of(sagemaker, variant, None)
    if model is None:
        return {}
    variables = containers_of(model)[0].get("Environment", {})
    return _of_model(*image_and_artifact(model), variables, variant["VariantName"])


def _is_made(role_arn: str, plan: DeploymentPlan) -> bool:
    """Returns whether a role has the name that CloudFormation chooses for the stack's own role."""
    # It keeps 24 characters of the stack's name.
    # A guest has the role of its host, whose stack and endpoint have one name.
    return role_arn.rpartition("/")[2].startswith(f"{plan.endpoint_name}-"[:24])


def _host(component: Raw | None, plan: DeploymentPlan) -> str | None:
    """Returns the model, or else the endpoint, that hosts a component; None for its own."""
    endpoint = None if component is None else component["EndpointName"]
    if endpoint == plan.endpoint_name:
        return plan.host
    return None if endpoint == plan.stack_name else endpoint


def _config(config: Raw, plan: DeploymentPlan, weights: Mapping[str, float]) -> _Settings:
    variants: list[Raw] = config["ProductionVariants"]
    names = [item["VariantName"] for item in variants]
    found: _Settings = {}
    for item in variants:
        endpoint = {
            "instances": list(fields.instance_types_of(item)),
            **Answer(item).fields(fields.VARIANT),
        }
        found |= _section("endpoint.serverless", Answer(item).fields(fields.SERVERLESS_FIELDS))
        if plan.config.autoscaling is not None or plan.component is not None:
            endpoint.pop("instance_count", None)
        endpoint.pop("weight", None)
        if item["VariantName"] in weights:
            endpoint["weight"] = weights[item["VariantName"]]
        if "routing" in endpoint:
            endpoint["routing"] = endpoint["routing"].lower()
        endpoint["ssm_access"] = endpoint.get("ssm_access") or None
        endpoint |= _section("prefix_routing", Answer(item).fields(fields.PREFIX_ROUTING))
        endpoint |= _section("core_dump", Answer(item).fields(fields.CORE_DUMP))
        if plan.component is not None:
            found |= _section(_COPIES, Answer(item).fields(fields.INSTANCES_OF_COPIES))
        found |= _of_variant(_section("endpoint", endpoint), item["VariantName"], names)
    # There is one at most.
    for item in config.get("ShadowProductionVariants", ()):
        types, count = fields.instance_types_of(item), item.get("InitialInstanceCount")
        found |= _shadow(item["InitialVariantWeight"], types, count)
    metrics = Answer(config.get("MetricsConfig", {})).fields(fields.METRICS)
    found |= _section("endpoint.metrics", dict(_DEFAULT_METRICS) | metrics)
    queue = Answer(config.get("AsyncInferenceConfig", {})).fields(fields.QUEUE)
    return found | _section("endpoint.async_inference", queue)


def _component(access: Access, described: Raw, plan: DeploymentPlan) -> _Settings:
    component = Answer(described)
    timeouts = _section("endpoint", component.fields(fields.COMPONENT_TIMEOUTS))
    copies = copies_of(component, plan)
    target = target_of(access, described["InferenceComponentName"])
    if target is not None:
        bounds, settings = ("min_copies", "max_copies"), plan.config.endpoint.copies
        planned = None if settings is None else (settings.min_copies, settings.max_copies)
        copies |= _of_target(access, target, bounds, planned)
    return timeouts | _section(_COPIES, copies)


def _scaling(access: Access, plan: DeploymentPlan, variants: list[str]) -> _Settings:
    alarms = list(calls.endpoint_alarms(access.client("cloudwatch"), plan.endpoint_name))
    targets = calls.scaling_items(
        access.client("application-autoscaling"),
        "describe_scalable_targets",
        ResourceIds=[f"endpoint/{plan.endpoint_name}/variant/{name}" for name in variants],
    )
    gpus = {each.name: each.gpu_count or 1 for each in plan.variants}
    files = plan.config.autoscaling
    planned = None if files is None else (files.min_instance_count, files.max_instance_count)
    found: _Settings = {}
    for target in targets:
        name = target["ResourceId"].rpartition("/")[2]
        bounds = ("min_instance_count", "max_instance_count")
        settings = _of_target(access, target, bounds, planned, gpus.get(name, 1), alarms)
        found |= _of_variant(_section("autoscaling", settings), name, variants)
    return found


def _of_target(
    access: Access,
    target: Raw,
    bounds: tuple[str, str],
    planned: tuple[int, int] | None,
    gpu_count: int = 1,
    alarms: Sequence[Raw] = (),
) -> _Settings:
    """Returns the settings of a scalable target: bounds, schedules, target, pauses and steps.

    `bounds` are the fields with the lower and the upper bound, and `planned` their values in the
    files, if these scale. Metrics of GPUs add up over the GPUs of an instance.
    """
    autoscaling, resource = access.client("application-autoscaling"), target["ResourceId"]
    actions = calls.scaling_items(autoscaling, "describe_scheduled_actions", ResourceId=resource)
    entries = [scaling.take_schedule(Answer(action), bounds) for action in actions]
    scheduled = [tuple(entry.get(bound) for bound in bounds) for entry in entries]
    live = (target["MinCapacity"], target["MaxCapacity"])
    # A scheduled action has set them, and the next one changes them again.
    if planned is not None and live in scheduled:
        live = planned
    texts = [
        _schedule(entry["name"], entry["at"], entry.get("time_zone"), of)
        for entry, of in zip(entries, scheduled, strict=True)
    ]
    settings: _Settings = {
        **dict(zip(bounds, live, strict=True)),
        "schedules": sorted(texts) or None,
    }
    operation = "describe_scaling_policies"
    for policy in calls.scaling_items(autoscaling, operation, ResourceId=resource):
        if (field := scaling.target_field(policy)) is not None:
            settings |= scaling.take_target(Answer(policy), field, gpu_count)
        # A component's only step policy wakes it.
        # The name of a variant's policy ends with the digest of its instance types.
        kind = policy["PolicyName"].partition("-")[0]
        is_step = policy["PolicyType"] == scaling.STEP_SCALING and kind != WAKE_POLICY
        if is_step and bounds[0] == "min_instance_count":
            settings["steps"] = ["no alarm carries the steps out"]
            if (alarm := scaling.alarm_of(policy, alarms)) is not None:
                settings["steps"] = _steps(scaling.step_loads(policy, alarm))
    return settings


def _alarms(access: Access, plan: DeploymentPlan, variants: list[str]) -> _Settings:
    gpus = {variant.name: variant.gpu_count for variant in plan.variants}
    found: _Settings = {}
    for alarm in calls.endpoint_alarms(access.client("cloudwatch"), plan.stack_name):
        # The alarms of a queue and of a component name no variant, and such an endpoint has one.
        kind, variant = kind_of(alarm), variant_of(alarm) or variants[0]
        if variant not in variants:
            continue
        settings: _Settings = {}
        if is_capacity_alarm(alarm):
            settings["at_max_capacity"] = True
        if kind is not None:
            settings |= scaling.alarm_fields(alarm, kind, gpus.get(variant, 1))
        found |= _of_variant(_section("alarms", settings), variant, variants)
    return found


# Both


def _variables(variables: Mapping[str, str]) -> _Settings:
    return {f"variable {name}": value for name, value in sorted(variables.items())}


def _of_model(
    image: str | None, artifact: str | None, variables: Mapping[str, str], variant: str
) -> _Settings:
    """Returns the settings of a model that only this variant serves."""
    found = {"image": image, "artifact": artifact, **_variables(variables)}
    return {f"{name} of {variant}": value for name, value in found.items()}


def _weight(weight: float) -> float:
    """Returns a weight as SageMaker answers with it, in single precision."""
    return float(f"{weight:.6g}")


def _shadow(share: float, instances: Sequence[str], count: int | None) -> _Settings:
    return {
        "endpoint.shadow.sampling_percent": 100 * share,
        "endpoint.shadow.instances": list(instances),
        "endpoint.shadow.instance_count": count,
    }


def _section(section: str, settings: _Settings) -> _Settings:
    return {f"{section}.{name}": value for name, value in settings.items()}


def _of_variant(settings: _Settings, variant: str, variants: Sequence[str]) -> _Settings:
    suffix = f" of {variant}" if len(variants) > 1 else ""
    return {f"{name}{suffix}": value for name, value in settings.items()}


def _schedule(
    name: str, expression: str, time_zone: str | None, bounds: Sequence[int | None]
) -> str:
    low, high = bounds
    return f"{name} ({low} to {high} from {expression} in {time_zone or 'UTC'})"


def _steps(steps: Sequence[tuple[int, float]]) -> list[str] | None:
    return [f"{added} more from {load:g}" for added, load in steps] or None
