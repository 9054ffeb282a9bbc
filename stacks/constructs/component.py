"""An inference component, the scaling of its copies, and the alarm that wakes it."""

from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from slipway.config.alarm_kinds import REQUESTS
from slipway.config.sections.scale_to_zero import ScaleToZero
from slipway.planning.component import WAKE_METRIC, ComponentPlan
from slipway.planning.plan import VariantPlan
from stacks.constructs.hosting import HostedModel
from stacks.constructs.scheduled_actions import scheduled_actions

_NAMESPACE = "sagemaker"
_DIMENSION = "sagemaker:inference-component:DesiredCopyCount"
_PERIOD_SECONDS = 60
# A component cannot be created with none (`slipway.planning.component`).
_COPIES_AT_CREATION = 1
# Long enough for many copies to start, so that the failed requests of one wake add one copy. And
# short, because no request wakes the endpoint during the pause. AWS's alarm for scaling in may take
# the copy away soon. For 15 minutes it still sees the quiet minutes before the last sleep.
_WAKE_COOLDOWN_SECONDS = 300


class ScaledComponent(Construct):
    """The model as an inference component, whose copies go to zero without requests.

    Target tracking follows the load, and removes the last copy. It cannot leave zero, because there
    is no load of a copy then. A request that finds no copy raises the wake alarm instead, and the
    alarm carries out a step policy that adds a copy. The alarm notifies nobody: a sleeping endpoint
    is no fault.

    CloudFormation deletes the scalable target first, then the component, then the endpoint.
    SageMaker would keep a component whose endpoint is gone.

    Args:
        scope: the endpoint's stack.
        construct_id: name within the scope.
        component: the resolved component.
        variant: whose instances hold the copies.
        endpoint_name: of the endpoint, which may be another stack's.
        hosted: the model of the copies, and their log group.

    Attributes:
        copies: the component.
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
            min_capacity=0,
            max_capacity=component.settings.max_copies,
            scheduled_actions=scheduled_actions(component.settings.schedules),
        )
        target.add_resource_dependency(self.copies)
        self._track_load(component, target)
        self._wake(component, target)

    def _track_load(self, component: ComponentPlan, target: autoscaling.CfnScalableTarget) -> None:
        construct_id, name, metric, value = _tracked(component.settings)
        autoscaling.CfnScalingPolicy(
            self,
            construct_id,
            policy_name=name,
            policy_type="TargetTrackingScaling",
            scaling_target_id=target.ref,
            target_tracking_scaling_policy_configuration=(
                autoscaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty(
                    target_value=value,
                    predefined_metric_specification=(
                        autoscaling.CfnScalingPolicy.PredefinedMetricSpecificationProperty(
                            predefined_metric_type=metric
                        )
                    ),
                    scale_in_cooldown=component.settings.scale_in_cooldown_seconds,
                    scale_out_cooldown=component.settings.scale_out_cooldown_seconds,
                )
            ),
        )

    def _wake(self, component: ComponentPlan, target: autoscaling.CfnScalableTarget) -> None:
        policy = autoscaling.CfnScalingPolicy(
            self,
            "Wake",
            policy_name="wake",
            policy_type="StepScaling",
            scaling_target_id=target.ref,
            step_scaling_policy_configuration=(
                autoscaling.CfnScalingPolicy.StepScalingPolicyConfigurationProperty(
                    adjustment_type="ChangeInCapacity",
                    metric_aggregation_type="Maximum",
                    cooldown=_WAKE_COOLDOWN_SECONDS,
                    step_adjustments=[
                        autoscaling.CfnScalingPolicy.StepAdjustmentProperty(
                            metric_interval_lower_bound=0, scaling_adjustment=1
                        )
                    ],
                )
            ),
        )
        cloudwatch.CfnAlarm(
            self,
            "Asleep",
            alarm_description=f"{component.name}: a request found no copy, and wakes the endpoint",
            namespace=REQUESTS.namespace,
            metric_name=WAKE_METRIC,
            dimensions=[
                cloudwatch.CfnAlarm.DimensionProperty(
                    name="InferenceComponentName", value=component.name
                )
            ],
            statistic="Sum",
            period=_PERIOD_SECONDS,
            evaluation_periods=1,
            # The example of AWS's guide has GreaterThanThreshold: one lonely request would fail and
            # not wake the endpoint.
            comparison_operator="GreaterThanOrEqualToThreshold",
            threshold=1,
            treat_missing_data=REQUESTS.missing_data,
            alarm_actions=[policy.ref],
        )


def _specification(
    component: ComponentPlan, variant: VariantPlan, model: sagemaker.CfnModel
) -> sagemaker.CfnInferenceComponent.InferenceComponentSpecificationProperty:
    of = sagemaker.CfnInferenceComponent
    return of.InferenceComponentSpecificationProperty(
        model_name=model.attr_model_name,
        compute_resource_requirements=(
            of.InferenceComponentComputeResourceRequirementsProperty(
                min_memory_required_in_mb=component.settings.copy_memory_mib,
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
    )


def _tracked(settings: ScaleToZero) -> tuple[str, str, str, float]:
    """Returns the id and the name of the policy, its predefined metric, and the value to hold."""
    if settings.target_concurrent_requests_per_copy is not None:
        return (
            "ConcurrentRequestsPerCopy",
            "concurrent-requests-per-copy",
            "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution",
            settings.target_concurrent_requests_per_copy,
        )
    if settings.target_invocations_per_copy_per_minute is None:
        raise ValueError("the plan has no scaling target")
    return (
        "InvocationsPerCopy",
        "invocations-per-copy",
        "SageMakerInferenceComponentInvocationsPerCopy",
        settings.target_invocations_per_copy_per_minute,
    )
