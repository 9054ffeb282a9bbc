"""An inference component, the scaling of its copies, and the alarm that wakes it."""

from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from slipway.config.alarm_kinds import REQUESTS
from slipway.planning.component import WAKE_METRIC, ComponentPlan
from slipway.planning.plan import VariantPlan
from slipway.stacks.constructs.hosting import HostedModel
from slipway.stacks.constructs.scaling import add_alarm, add_policy, scheduled_actions
from slipway.stacks.constructs.scaling_policies import ScalingMetric, StepPolicy, TrackingPolicy

_NAMESPACE = "sagemaker"
_DIMENSION = "sagemaker:inference-component:DesiredCopyCount"
SCALED_COPIES = f"{_DIMENSION}|{_NAMESPACE}"
"""Ends the id that CloudFormation gives to the scalable target of a component's copies."""
# A component cannot be created with none (`slipway.planning.component`).
_COPIES_AT_CREATION = 1
# Long enough for many copies to start, so that the failed requests of one wake add one copy. And
# short, because no request wakes the endpoint during the pause. AWS's alarm for scaling in may take
# the copy away soon. For 15 minutes it still sees the quiet minutes before the last sleep.
_WAKE_COOLDOWN_SECONDS = 300


class ScaledComponent(Construct):
    """The model as an inference component, whose copies may go to zero without requests.

    Target tracking follows the load, and removes the last copy. It cannot leave zero, because there
    is no load of a copy then. A request that finds no copy raises the wake alarm instead, and the
    alarm carries out a step policy that adds a copy. The alarm notifies nobody: a sleeping endpoint
    is no fault.

    CloudFormation deletes the scalable target first, then the component, then the endpoint.
    SageMaker would keep a component whose endpoint is gone.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        component: ComponentPlan,
        variant: VariantPlan,
        endpoint_name: str,
        hosted: HostedModel,
    ) -> None:
        super().__init__(scope, construct_id)
        self.copies = sagemaker.CfnInferenceComponent(
            self,
            "Component",
            # Literal, because the log group and the metrics of requests have the name.
            inference_component_name=component.name,
            endpoint_name=endpoint_name,
            variant_name=variant.name,
            specification=_specification(component, variant, hosted.model),
            runtime_config=(
                sagemaker.CfnInferenceComponent.InferenceComponentRuntimeConfigProperty(
                    copy_count=_COPIES_AT_CREATION
                )
            ),
        )
        self.copies.add_resource_dependency(hosted.log_group)
        target = autoscaling.CfnScalableTarget(
            self,
            "Target",
            service_namespace=_NAMESPACE,
            scalable_dimension=_DIMENSION,
            resource_id=f"inference-component/{component.name}",
            min_capacity=component.settings.min_copies,
            max_capacity=component.settings.max_copies,
            scheduled_actions=scheduled_actions(component.settings.schedules),
        )
        target.add_resource_dependency(self.copies)
        add_policy(self, policy=_tracking_policy(component), target_id=target.ref)
        if component.sleeps:
            wake = wake_policy(component.name)
            add_alarm(self, "Asleep", wake, add_policy(self, policy=wake, target_id=target.ref))


def _specification(
    component: ComponentPlan, variant: VariantPlan, model: sagemaker.CfnModel
) -> sagemaker.CfnInferenceComponent.InferenceComponentSpecificationProperty:
    of, settings = sagemaker.CfnInferenceComponent, component.settings
    caching, scheduling = None, None
    if settings.cache_model is not None:
        caching = of.InferenceComponentDataCacheConfigProperty(enable_caching=settings.cache_model)
    if settings.placement_strategy is not None:
        # CloudFormation requires the balance of zones too, and there is one mode.
        scheduling = of.InferenceComponentSchedulingConfigProperty(
            placement_strategy=settings.placement_strategy.upper(),
            availability_zone_balance=of.InferenceComponentAvailabilityZoneBalanceProperty(
                enforcement_mode="PERMISSIVE", max_imbalance=settings.max_zone_imbalance
            ),
        )
    return of.InferenceComponentSpecificationProperty(
        model_name=model.attr_model_name,
        compute_resource_requirements=(
            of.InferenceComponentComputeResourceRequirementsProperty(
                min_memory_required_in_mb=settings.copy_memory_mib,
                max_memory_required_in_mb=settings.max_copy_memory_mib,
                number_of_accelerator_devices_required=component.accelerators_per_copy,
                number_of_cpu_cores_required=component.vcpus_per_copy,
            )
        ),
        startup_parameters=of.InferenceComponentStartupParametersProperty(
            container_startup_health_check_timeout_in_seconds=(
                variant.container_startup_health_check_timeout_seconds
            ),
            model_data_download_timeout_in_seconds=variant.model_data_download_timeout_seconds,
        ),
        data_cache_config=caching,
        scheduling_config=scheduling,
    )


def _tracking_policy(component: ComponentPlan) -> TrackingPolicy:
    settings = component.settings
    if settings.target_concurrent_requests_per_copy is not None:
        construct_id, name = "ConcurrentRequestsPerCopy", "ConcurrentRequestsPerCopyHighResolution"
        target = settings.target_concurrent_requests_per_copy
    elif settings.target_invocations_per_copy_per_minute is not None:
        construct_id = name = "InvocationsPerCopy"
        target = settings.target_invocations_per_copy_per_minute
    else:
        raise ValueError("the plan has no scaling target")
    return TrackingPolicy(
        construct_id,
        _metric(component.name, construct_id, "Sum", f"SageMakerInferenceComponent{name}"),
        target,
        settings.scale_in_cooldown_seconds,
        settings.scale_out_cooldown_seconds,
    )


def wake_policy(component: str, *, of: str = "") -> StepPolicy:
    """Returns the policy that adds the first copy after a request to a component.

    `of` makes the policy's name another one than that of the target's own policy.

    Its alarm takes one request. The example of AWS's guide has GreaterThanThreshold: one lonely
    request would fail and not wake the endpoint.
    """
    return StepPolicy(
        "Wake",
        _metric(component, WAKE_METRIC, "Sum"),
        ((1, 1),),
        _WAKE_COOLDOWN_SECONDS,
        f"{component}: a request found no copy, and wakes the endpoint",
        of_types=of,
    )


def _metric(
    component: str, name: str, statistic: str, predefined_type: str | None = None
) -> ScalingMetric:
    dimensions = {"InferenceComponentName": component}
    return ScalingMetric(REQUESTS.namespace, name, statistic, dimensions, predefined_type)
