"""How a live endpoint differs from its model's files, setting by setting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.access import Access
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.operations.alarms import endpoint_alarms
from slipway.operations.component import live_component, live_settings, planned_settings
from slipway.operations.live import described_config, instance_types_of, model_of
from slipway.operations.metrics_differences import deployed_metrics, planned_metrics
from slipway.operations.queue_differences import deployed_queue, planned_queue
from slipway.operations.schedules import live_schedules, planned_schedules
from slipway.planning.asynchronous import BACKLOG_PER_INSTANCE, WAKE_POLICY
from slipway.planning.described_alarms import is_capacity_alarm, kind_of, variant_of
from slipway.planning.plan import DeploymentPlan, VariantPlan

_NAMESPACE = "sagemaker"
# A scaling policy's metric to the field of `autoscaling`.
_TARGET_FIELDS = {
    "SageMakerVariantInvocationsPerInstance": "target_invocations_per_instance_per_minute",
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": (
        "target_concurrent_requests_per_instance"
    ),
    # The backlog has no predefined metric.
    BACKLOG_PER_INSTANCE: "target_backlog_per_instance",
    "GPUUtilization": "target_gpu_utilization_percent",
}

_ENDPOINT_OF = "endpoint.scale_to_zero.endpoint_of"
# A guest's config repeats them; the endpoint of its host has them.
_OF_THE_HOST = ("endpoint.instances", "endpoint.inference_ami_version", "endpoint.routing")

# A setting by its name in the config, or `variable NAME` of the container.
_Settings = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """A setting whose value in the files was not deployed.

    Args:
        setting: its name in the model config, or `variable NAME` for a variable of the container;
            with the variant's name where there are several variants.
        deployed: what the account has; None where the setting is absent there.
        files: what the files say; None where they do not have the setting.
    """

    setting: str
    deployed: str | None
    files: str | None


def find_differences(
    plan: DeploymentPlan, access: Access, config_name: str, *, is_protected: bool
) -> tuple[Difference, ...]:
    """Compares an endpoint's configuration, scaling and alarms with a plan.

    The image and the artifact are left out: `slipway status` has rows of its own for them.

    Args:
        plan: the plan from the files.
        access: clients of the account.
        config_name: the endpoint configuration that is live.
        is_protected: whether CloudFormation refuses to delete the endpoint's stack.

    Returns:
        Every setting that differs, in the order of the config's sections; empty where the
        configuration or its model was deleted, since nothing is known then.
    """
    sagemaker = access.client("sagemaker")
    config = described_config(sagemaker, config_name)
    if config is None:
        return ()
    variants: list[dict[str, Any]] = config["ProductionVariants"]
    component = live_component(sagemaker, config_name, plan.stack_name)
    model = model_of(sagemaker, variants[0], component)
    if model is None:
        return ()
    is_scaled = plan.config.autoscaling is not None or plan.component is not None
    deployed = {
        **_model(model, plan),
        "endpoint.termination_protection": is_protected,
        **_alarms(access, plan.stack_name, [item["VariantName"] for item in variants]),
        **({} if component is None else live_settings(access, component, plan.component)),
        _ENDPOINT_OF: _host(component, plan),
    }
    if plan.host is None:
        deployed |= {
            **_variants(variants, is_scaled=is_scaled),
            **_shadow(config),
            **deployed_metrics(config),
            **deployed_queue(config),
            **_scaling(access, plan, [item["VariantName"] for item in variants]),
        }
    files = _planned(plan)
    names = [*files, *(name for name in deployed if name not in files)]
    return tuple(
        Difference(name, _text(deployed.get(name)), _text(files.get(name)))
        for name in names
        if deployed.get(name) != files.get(name)
    )


def _planned(plan: DeploymentPlan) -> _Settings:
    found: _Settings = {
        f"variable {name}": value for name, value in sorted(plan.container_environment.items())
    }
    found["endpoint.network_isolation"] = plan.config.endpoint.network_isolation
    found["endpoint.execution_role_arn"] = plan.config.endpoint.execution_role_arn
    found["endpoint.termination_protection"] = plan.config.endpoint.termination_protection
    several = len(plan.variants) > 1
    for variant in plan.variants:
        suffix = f" of {variant.name}" if several else ""
        found |= {f"{name}{suffix}": value for name, value in _of_variant(plan, variant).items()}
    if plan.shadow is not None:
        found |= _shadow_settings(
            plan.shadow.weight, list(plan.shadow.instance_types), plan.shadow.instance_count
        )
    if plan.host is None:
        found |= planned_metrics(plan.config.endpoint.metrics)
        found |= planned_queue(plan.config.endpoint.queue)
    else:
        found = {name: value for name, value in found.items() if name not in _OF_THE_HOST}
    if plan.component is not None:
        found |= planned_settings(plan.component)
        found[_ENDPOINT_OF] = plan.host
    return {name: value for name, value in found.items() if value is not None}


def _host(component: Mapping[str, Any] | None, plan: DeploymentPlan) -> str | None:
    """Returns the model, or else the endpoint, that hosts a component; None for its own."""
    endpoint = None if component is None else component["EndpointName"]
    if endpoint == plan.endpoint_name:
        return plan.host
    return None if endpoint == plan.stack_name else endpoint


def _of_variant(plan: DeploymentPlan, variant: VariantPlan) -> _Settings:
    endpoint, alarms, scaling = plan.config.endpoint, plan.config.alarms, plan.config.autoscaling
    found: _Settings = {
        "endpoint.instances": list(variant.instance_types),
        # Where the endpoint scales, its size is not the file's.
        "endpoint.instance_count": (
            variant.instance_count if scaling is None and plan.component is None else None
        ),
        "endpoint.weight": variant.weight if len(plan.variants) > 1 else None,
        "endpoint.model_data_download_timeout_seconds": variant.model_data_download_timeout_seconds,
        "endpoint.container_startup_health_check_timeout_seconds": (
            variant.container_startup_health_check_timeout_seconds
        ),
        "endpoint.volume_size_gb": endpoint.volume_size_gb,
        "endpoint.capacity_reservation_arn": endpoint.capacity_reservation_arn,
        "endpoint.inference_ami_version": variant.inference_ami_version,
        "endpoint.routing": endpoint.routing.upper(),
        **{
            f"alarms.{kind.field}": threshold / kind.metric_units_per_field_unit
            for kind in ALARM_KINDS.values()
            if (threshold := alarms.metric_threshold(kind, variant.gpu_count)) is not None
        },
        "alarms.evaluation_periods_minutes": alarms.evaluation_periods_minutes,
        "alarms.at_max_capacity": plan.at_max_capacity is not None or None,
    }
    if scaling is not None:
        # Live steps have the metric's unit, which adds up over the GPUs of an instance.
        is_by_gpu = scaling.target_gpu_utilization_percent is not None
        target = scaling.target_value * (variant.gpu_count if is_by_gpu else 1)
        found |= {
            **{f"autoscaling.{name}": value for name, value in scaling},
            "autoscaling.schedules": planned_schedules(scaling.schedules),
            "autoscaling.steps": [
                _step(step.add_instances, step.from_times_target * target) for step in scaling.steps
            ]
            or None,
        }
    return found


def _step(added: int, load: float) -> str:
    return f"{added} more from {load:g}"


def _model(model: Mapping[str, Any], plan: DeploymentPlan) -> _Settings:
    container = model.get("PrimaryContainer") or model["Containers"][0]
    found = {
        f"variable {name}": value
        for name, value in sorted(container.get("Environment", {}).items())
    }
    role = model.get("ExecutionRoleArn", "")
    return {
        **found,
        "endpoint.network_isolation": model.get("EnableNetworkIsolation", False),
        "endpoint.execution_role_arn": None if _is_made(role, plan) else role,
    }


def _is_made(role_arn: str, plan: DeploymentPlan) -> bool:
    """Returns whether a role has the name that CloudFormation chooses for the stack's own role."""
    # It keeps 24 characters of the stack's name.
    # A guest has the role of its host, whose stack and endpoint have one name.
    return role_arn.rpartition("/")[2].startswith(f"{plan.endpoint_name}-"[:24])


def _variants(variants: list[dict[str, Any]], *, is_scaled: bool) -> _Settings:
    found: _Settings = {}
    several = len(variants) > 1
    for item in variants:
        settings = {
            "endpoint.instances": list(instance_types_of(item)),
            "endpoint.instance_count": None if is_scaled else item.get("InitialInstanceCount"),
            "endpoint.weight": item.get("InitialVariantWeight") if several else None,
            "endpoint.model_data_download_timeout_seconds": item.get(
                "ModelDataDownloadTimeoutInSeconds"
            ),
            "endpoint.container_startup_health_check_timeout_seconds": item.get(
                "ContainerStartupHealthCheckTimeoutInSeconds"
            ),
            "endpoint.volume_size_gb": item.get("VolumeSizeInGB"),
            "endpoint.capacity_reservation_arn": item.get("CapacityReservationConfig", {}).get(
                "MlReservationArn"
            ),
            "endpoint.inference_ami_version": item.get("InferenceAmiVersion"),
            "endpoint.routing": item.get("RoutingConfig", {}).get("RoutingStrategy"),
        }
        found |= _named(settings, item["VariantName"], several=several)
    return found


def _shadow(config: Mapping[str, Any]) -> _Settings:
    found: _Settings = {}
    # There is one at most.
    for item in config.get("ShadowProductionVariants", ()):
        found |= _shadow_settings(
            item["InitialVariantWeight"],
            list(instance_types_of(item)),
            item.get("InitialInstanceCount"),
        )
    return found


def _shadow_settings(share: float, instances: list[str], count: int | None) -> _Settings:
    return {
        "endpoint.shadow.sampling_percent": 100 * share,
        "endpoint.shadow.instances": instances,
        "endpoint.shadow.instance_count": count,
    }


def _scaling(access: Access, plan: DeploymentPlan, variants: list[str]) -> _Settings:
    autoscaling = access.client("application-autoscaling")
    alarms = list(endpoint_alarms(access.client("cloudwatch"), plan.endpoint_name))
    resources = {f"endpoint/{plan.endpoint_name}/variant/{name}": name for name in variants}
    several = len(variants) > 1
    found: _Settings = {}
    targets = autoscaling.describe_scalable_targets(
        ServiceNamespace=_NAMESPACE, ResourceIds=list(resources)
    )["ScalableTargets"]
    gpus = {variant.name: variant.gpu_count or 1 for variant in plan.variants}
    for target in targets:
        variant = resources[target["ResourceId"]]
        schedules = live_schedules(autoscaling, target["ResourceId"])
        bounds = (target["MinCapacity"], target["MaxCapacity"])
        if plan.config.autoscaling is not None:
            planned = (
                plan.config.autoscaling.min_instance_count,
                plan.config.autoscaling.max_instance_count,
            )
            bounds = schedules.bounds_of(target, planned)
        settings = {
            "autoscaling.min_instance_count": bounds[0],
            "autoscaling.max_instance_count": bounds[1],
            "autoscaling.schedules": schedules.texts,
        }
        policies = autoscaling.describe_scaling_policies(
            ServiceNamespace=_NAMESPACE, ResourceId=target["ResourceId"]
        )["ScalingPolicies"]
        for policy in policies:
            tracking = policy.get("TargetTrackingScalingPolicyConfiguration", {})
            metric = tracking.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
            custom = tracking.get("CustomizedMetricSpecification", {}).get("MetricName")
            field = _TARGET_FIELDS.get(metric or custom)
            if field is not None:
                # The metric adds up over the GPUs of an instance.
                parts = gpus.get(variant, 1) if metric is None else 1
                settings |= {
                    f"autoscaling.{field}": tracking["TargetValue"] / parts,
                    "autoscaling.scale_in_cooldown_seconds": tracking.get("ScaleInCooldown"),
                    "autoscaling.scale_out_cooldown_seconds": tracking.get("ScaleOutCooldown"),
                }
            if policy["PolicyType"] == "StepScaling" and policy["PolicyName"] != WAKE_POLICY:
                settings["autoscaling.steps"] = _steps(policy, alarms)
        found |= _named(settings, variant, several=several)
    return found


def _steps(policy: Mapping[str, Any], alarms: list[dict[str, Any]]) -> list[str]:
    """Returns the steps of a policy; their bounds count from the threshold of its alarm."""
    arn = policy["PolicyARN"]
    threshold = next((a["Threshold"] for a in alarms if arn in a.get("AlarmActions", ())), None)
    if threshold is None:
        return ["no alarm carries the steps out"]
    return [
        _step(step["ScalingAdjustment"], threshold + step.get("MetricIntervalLowerBound", 0))
        for step in policy["StepScalingPolicyConfiguration"]["StepAdjustments"]
    ]


def _alarms(access: Access, endpoint_name: str, variants: list[str]) -> _Settings:
    found: _Settings = {}
    for alarm in endpoint_alarms(access.client("cloudwatch"), endpoint_name):
        # The alarms of a queue and of a component name no variant, and such an endpoint has one.
        kind, variant = kind_of(alarm), variant_of(alarm) or variants[0]
        if variant in variants and is_capacity_alarm(alarm):
            raised = {"alarms.at_max_capacity": True}
            found |= _named(raised, variant, several=len(variants) > 1)
        if kind is None or variant not in variants:
            continue
        settings = {
            f"alarms.{kind.field}": alarm["Threshold"] / kind.metric_units_per_field_unit,
            "alarms.evaluation_periods_minutes": alarm["EvaluationPeriods"],
        }
        found |= _named(settings, variant, several=len(variants) > 1)
    return found


def _named(settings: Mapping[str, Any], variant: str, *, several: bool) -> _Settings:
    """Returns a variant's settings that are set, with its name where there are others."""
    suffix = f" of {variant}" if several else ""
    return {f"{name}{suffix}": value for name, value in settings.items() if value is not None}


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
