"""The inference component of an endpoint that scales to zero, read back from the account."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slipway.access import Access
from slipway.operations.live import described_component, described_config, hosts_components
from slipway.operations.schedules import live_schedules, planned_schedules
from slipway.planning.component import COPY_TARGETS, ComponentPlan

_NAMESPACE = "sagemaker"
_SECTION = "endpoint.scale_to_zero"


@dataclass(frozen=True)
class Component:
    """A live inference component.

    Args:
        name: InferenceComponentName.
        status: SageMaker's, for example `InService`.
        changed: when that last changed, in UTC.
        failure_reason: SageMaker's, of the last change that failed.
        current_copies: copies that answer.
        desired_copies: copies that there shall be.
        max_copies: the most copies; None if they are not scaled.
    """

    name: str
    status: str
    changed: datetime
    failure_reason: str | None
    current_copies: int
    desired_copies: int
    max_copies: int | None

    @property
    def is_asleep(self) -> bool:
        """Returns whether the next request finds no copy."""
        return self.current_copies == 0 and self.status == "InService"


def live_component(sagemaker: Any, config_name: str, name: str) -> dict[str, Any] | None:
    """Returns DescribeInferenceComponent's answer for an endpoint that hosts one, or None.

    Args:
        sagemaker: boto3's client.
        config_name: the endpoint configuration that is live.
        name: of the component.
    """
    config = described_config(sagemaker, config_name)
    if config is None or not hosts_components(config):
        return None
    return described_component(sagemaker, name)


def other_components(sagemaker: Any, described: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of the other components on a component's endpoint, in order.

    Args:
        sagemaker: boto3's client.
        described: DescribeInferenceComponent's answer.
    """
    pages = sagemaker.get_paginator("list_inference_components").paginate(
        EndpointNameEquals=described["EndpointName"]
    )
    names = (
        each["InferenceComponentName"] for page in pages for each in page["InferenceComponents"]
    )
    return tuple(sorted(name for name in names if name != described["InferenceComponentName"]))


def read_component(access: Access, described: Mapping[str, Any]) -> Component:
    """Returns a component with its bounds.

    Args:
        access: clients of the account.
        described: DescribeInferenceComponent's answer.
    """
    copies = described.get("RuntimeConfig", {})
    name = described["InferenceComponentName"]
    target = _target(access, name)
    return Component(
        name=name,
        status=described["InferenceComponentStatus"],
        changed=described["LastModifiedTime"],
        failure_reason=described.get("FailureReason"),
        current_copies=copies.get("CurrentCopyCount", 0),
        desired_copies=copies.get("DesiredCopyCount", 0),
        max_copies=target["MaxCapacity"] if target else None,
    )


def planned_settings(component: ComponentPlan) -> dict[str, Any]:
    """Returns a plan's settings by the names of their fields."""
    found = {
        **dict(component.settings),
        "accelerators_per_copy": component.accelerators_per_copy,
        "vcpus_per_copy": component.vcpus_per_copy,
        "schedules": planned_schedules(component.settings.schedules),
    }
    del found["endpoint_of"]  # compared with the names of endpoints
    return {f"{_SECTION}.{name}": value for name, value in found.items()}


def live_settings(
    access: Access, described: Mapping[str, Any], plan: ComponentPlan | None
) -> dict[str, Any]:
    """Returns the settings of a live component and of its scaling, by the names of their fields.

    Args:
        access: clients of the account.
        described: DescribeInferenceComponent's answer.
        plan: gives the bounds while a scheduled action has set others; None in another mode.
    """
    specification = described.get("Specification", {})
    wanted = specification.get("ComputeResourceRequirements", {})
    start = specification.get("StartupParameters", {})
    found = {
        "accelerators_per_copy": wanted.get("NumberOfAcceleratorDevicesRequired"),
        "vcpus_per_copy": wanted.get("NumberOfCpuCoresRequired"),
        "copy_memory_mib": wanted.get("MinMemoryRequiredInMb"),
        **_scaling(access, described["InferenceComponentName"], plan),
    }
    timeouts = {
        "endpoint.model_data_download_timeout_seconds": start.get(
            "ModelDataDownloadTimeoutInSeconds"
        ),
        "endpoint.container_startup_health_check_timeout_seconds": start.get(
            "ContainerStartupHealthCheckTimeoutInSeconds"
        ),
    }
    return {**timeouts, **{f"{_SECTION}.{name}": value for name, value in found.items()}}


def _scaling(access: Access, name: str, plan: ComponentPlan | None) -> dict[str, Any]:
    target = _target(access, name)
    if target is None:
        return {}
    autoscaling = access.client("application-autoscaling")
    schedules = live_schedules(autoscaling, target["ResourceId"])
    most = target["MaxCapacity"]
    if plan is not None:
        most = schedules.bounds_of(target, (0, plan.settings.max_copies))[1]
    found: dict[str, Any] = {"max_copies": most, "schedules": schedules.texts}
    policies = autoscaling.describe_scaling_policies(
        ServiceNamespace=_NAMESPACE, ResourceId=target["ResourceId"]
    )["ScalingPolicies"]
    for policy in policies:
        tracking = policy.get("TargetTrackingScalingPolicyConfiguration", {})
        metric = tracking.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
        if metric in COPY_TARGETS:
            found |= {
                COPY_TARGETS[metric]: tracking["TargetValue"],
                "scale_in_cooldown_seconds": tracking.get("ScaleInCooldown"),
                "scale_out_cooldown_seconds": tracking.get("ScaleOutCooldown"),
            }
    return found


def _target(access: Access, name: str) -> dict[str, Any] | None:
    targets: list[dict[str, Any]] = access.client(
        "application-autoscaling"
    ).describe_scalable_targets(
        ServiceNamespace=_NAMESPACE, ResourceIds=[f"inference-component/{name}"]
    )["ScalableTargets"]
    return targets[0] if targets else None
