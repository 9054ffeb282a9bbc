"""Model, endpoint config, endpoint and log group."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from slipway.planning.plan import DeploymentPlan, RolloutPlan, VariantPlan


class HostedEndpoint(Construct):
    """Only the endpoint has a name: models and configs are replaced, new before old.

    Attributes:
        log_group: where the containers write.
        config: the endpoint configuration.
        endpoint: the endpoint.

    Args:
        scope: the endpoint's stack.
        construct_id: name within it.
        plan: what is deployed.
        role: what the container runs with.
        log_key_arn: the key of the log group; None for CloudWatch Logs' own.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: DeploymentPlan,
        role: iam.Role,
        log_key_arn: str | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.log_group = logs.CfnLogGroup(
            self,
            "LogGroup",
            log_group_name=plan.log_group_name,
            retention_in_days=plan.log_retention_days,
            kms_key_id=log_key_arn,
        )
        # SageMaker would create the group itself, with no retention and outside the stack.
        self.log_group.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        model = sagemaker.CfnModel(
            self,
            "Model",
            execution_role_arn=role.role_arn,
            enable_network_isolation=plan.network_isolation,
            primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
                image=plan.image.uri,
                environment=dict(sorted(plan.container_environment.items())),
                model_data_source=_model_data(plan),
            ),
        )
        self.config = sagemaker.CfnEndpointConfig(
            self,
            # Two ids, so that adding or dropping autoscaling makes a new configuration even where
            # nothing else changes. What UpdateEndpoint does with the configuration that the
            # endpoint has already is not documented, and a fleet that was scaled out must shrink
            # to the file's count.
            "FixedEndpointConfig" if plan.autoscaling is None else "EndpointConfig",
            production_variants=[
                _production_variant(variant, model, plan.routing_strategy)
                for variant in plan.variants
            ],
        )
        self.endpoint = sagemaker.CfnEndpoint(
            self,
            "Endpoint",
            endpoint_name=plan.endpoint_name,
            endpoint_config_name=self.config.attr_endpoint_config_name,
            # With autoscaling an update keeps the fleet's size; with a fixed count the file rules.
            retain_all_variant_properties=plan.autoscaling is not None,
            exclude_retained_variant_properties=_excluded(plan),
        )
        self.endpoint.add_resource_dependency(self.log_group)

    def guard(self, rollout: RolloutPlan, alarms: Sequence[cloudwatch.CfnAlarm]) -> None:
        """Has SageMaker watch its updates: all at once, with the plan's waits and alarms.

        The alarms name the endpoint literally, so that it can refer to them.
        """
        rollback = None
        if alarms:
            rollback = sagemaker.CfnEndpoint.AutoRollbackConfigProperty(
                alarms=[
                    sagemaker.CfnEndpoint.AlarmProperty(alarm_name=alarm.ref) for alarm in alarms
                ]
            )
        self.endpoint.deployment_config = sagemaker.CfnEndpoint.DeploymentConfigProperty(
            auto_rollback_configuration=rollback,
            blue_green_update_policy=sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
                maximum_execution_timeout_in_seconds=rollout.max_execution_seconds,
                termination_wait_in_seconds=rollout.termination_wait_seconds,
                traffic_routing_configuration=sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(
                    # The other strategies have no plan yet (planning/support.py).
                    type="ALL_AT_ONCE",
                    wait_interval_in_seconds=rollout.wait_seconds,
                ),
            ),
        )


def _model_data(plan: DeploymentPlan) -> sagemaker.CfnModel.ModelDataSourceProperty:
    return sagemaker.CfnModel.ModelDataSourceProperty(
        s3_data_source=sagemaker.CfnModel.S3DataSourceProperty(
            s3_uri=plan.artifact.s3_uri,
            s3_data_type="S3Prefix",
            compression_type="None",
        )
    )


def _production_variant(
    variant: VariantPlan, model: sagemaker.CfnModel, routing_strategy: str
) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    pool = None
    if len(variant.instance_types) > 1:
        pool = [
            sagemaker.CfnEndpointConfig.InstancePoolProperty(
                instance_type=instance_type, priority=priority
            )
            for priority, instance_type in enumerate(variant.instance_types, 1)
        ]
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=variant.name,
        model_name=model.attr_model_name,
        instance_type=None if pool else variant.instance_type,
        instance_pools=pool,
        variant_instance_provision_timeout_in_seconds=(variant.instance_provision_timeout_seconds),
        initial_instance_count=variant.instance_count,
        initial_variant_weight=variant.weight,
        routing_config=sagemaker.CfnEndpointConfig.RoutingConfigProperty(
            routing_strategy=routing_strategy
        ),
        inference_ami_version=variant.inference_ami_version,
        volume_size_in_gb=variant.volume_size_gb,
        model_data_download_timeout_in_seconds=variant.model_data_download_timeout_seconds,
        container_startup_health_check_timeout_in_seconds=(
            variant.container_startup_health_check_timeout_seconds
        ),
    )


def _excluded(
    plan: DeploymentPlan,
) -> list[sagemaker.CfnEndpoint.VariantPropertyProperty] | None:
    """What an update takes from the template even while it keeps the instance count."""
    if plan.autoscaling is None:
        return None
    return [
        sagemaker.CfnEndpoint.VariantPropertyProperty(variant_property_type=name)
        for name in ("DesiredWeight", "DataCaptureConfig")
    ]
