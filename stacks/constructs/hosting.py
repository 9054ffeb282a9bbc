"""Model and log group, endpoint config with capture and queue, and endpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from slipway.config.sections.endpoint import AsyncInference
from slipway.config.sections.recording import DataCapture, Metrics
from slipway.planning.artifact_place import CapturePlace
from slipway.planning.asynchronous import topic_types
from slipway.planning.plan import ArtifactPlan, DeploymentPlan, ImagePlan, ServedModel
from slipway.stacks.constructs.execution_role import ModeRights
from slipway.stacks.constructs.production_variants import production_variant

_MODES = {"input": "Input", "output": "Output"}
_Property = sagemaker.CfnEndpoint.VariantPropertyProperty


@dataclass(frozen=True)
class Surroundings:
    """What a model's stack gives to the containers.

    The role may do `rights` for settings of this endpoint. None is SageMaker's own network, and
    CloudWatch Logs' own key. `alarm_prefix` begins the names of the stack's alarms.
    """

    role_arn: str
    rights: Sequence[ModeRights]
    vpc: sagemaker.CfnModel.VpcConfigProperty | None
    log_key_arn: str | None
    alarm_prefix: str


class HostedModel(Construct):
    """A model, and the log group of its containers.

    The model is replaced: the new one is created before the old one is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: DeploymentPlan,
        surroundings: Surroundings,
    ) -> None:
        super().__init__(scope, construct_id)
        self.log_group = logs.CfnLogGroup(
            self,
            "LogGroup",
            log_group_name=plan.log_group_name,
            retention_in_days=plan.config.endpoint.log_retention_days,
            kms_key_id=surroundings.log_key_arn,
        )
        # Otherwise SageMaker would create the group, with no retention and outside the stack.
        self.log_group.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        self._plan, self._surroundings = plan, surroundings
        self.model = self.add_model("Model", plan)

    def add_model(self, construct_id: str, served: ServedModel) -> sagemaker.CfnModel:
        """Adds a model that a variant or a copy serves."""
        model = sagemaker.CfnModel(
            self,
            construct_id,
            execution_role_arn=self._surroundings.role_arn,
            enable_network_isolation=self._plan.config.endpoint.network_isolation,
            primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
                image=served.image.uri,
                image_config=_image_config(served.image),
                environment=dict(sorted(served.container_environment.items())),
                **_model_data(served.artifact),
            ),
            vpc_config=self._surroundings.vpc,
        )
        for each in self._surroundings.rights:
            model.add_resource_dependency(each.policy)
        return model


class HostedEndpoint(HostedModel):
    """The resources of an endpoint; only the endpoint itself has a fixed name.

    Configurations are replaced as models are.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: DeploymentPlan,
        surroundings: Surroundings,
        capture: sagemaker.CfnEndpointConfig.DataCaptureConfigProperty | None,
        queue: sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty | None,
    ) -> None:
        super().__init__(scope, construct_id, plan=plan, surroundings=surroundings)
        component, settings = plan.component, plan.config.endpoint
        models = {
            each.name: self.model if served is plan else self.add_model(f"Model{each.name}", served)
            for each in plan.every_variant
            for served in (plan.served_by(each),)
        }
        overrides = {
            name: model
            for each in plan.overriding
            for model in (self.add_model(f"Model{each.name}", plan.served_by(each)),)
            for name in each.instance_types
        }
        self.config = sagemaker.CfnEndpointConfig(
            self,
            # Two ids, so that adding or dropping autoscaling makes a new configuration even if
            # nothing else changes. UpdateEndpoint refuses the endpoint's present configuration, and
            # a fleet that was scaled out must shrink to the file's count.
            "FixedEndpointConfig" if plan.config.autoscaling is None else "EndpointConfig",
            production_variants=[
                production_variant(plan, variant, models[variant.name], overrides)
                for variant in plan.variants
            ],
            # On a component's instances, these hold for every model.
            execution_role_arn=None if component is None else surroundings.role_arn,
            enable_network_isolation=None if component is None else settings.network_isolation,
            vpc_config=None if component is None else _vpc_of_config(surroundings.vpc),
            shadow_production_variants=(
                [production_variant(plan, plan.shadow, models[plan.shadow.name], overrides)]
                if plan.shadow is not None
                else None
            ),
            kms_key_id=settings.volume_key_arn,
            data_capture_config=capture,
            metrics_config=_metrics(settings.metrics),
            async_inference_config=queue,
        )
        if component is not None:
            for each in surroundings.rights:
                self.config.add_resource_dependency(each.policy)
        # With autoscaling or copies, an update keeps the fleet's size; otherwise the file decides.
        keeps_size = plan.config.autoscaling is not None or component is not None
        # Several variants keep the weights that were set after the last update.
        keeps_weights = plan.shares_by_weight
        set_anew = {
            "DesiredInstanceCount": not keeps_size,
            "DesiredWeight": not keeps_weights,
            "DataCaptureConfig": True,
        }
        self.endpoint = sagemaker.CfnEndpoint(
            self,
            "Endpoint",
            endpoint_name=plan.endpoint_name,
            endpoint_config_name=self.config.attr_endpoint_config_name,
            retain_all_variant_properties=keeps_size or keeps_weights,
            exclude_retained_variant_properties=(
                [
                    _Property(variant_property_type=name)
                    for name, is_set in set_anew.items()
                    if is_set
                ]
                if keeps_size or keeps_weights
                else None
            ),
        )
        self.endpoint.add_resource_dependency(self.log_group)


def _model_data(artifact: ArtifactPlan) -> dict[str, Any]:
    if artifact.is_archive:
        return {"model_data_url": artifact.data_uri}
    source = sagemaker.CfnModel.S3DataSourceProperty(
        s3_uri=artifact.data_uri,
        s3_data_type="S3Prefix" if artifact.object_name is None else "S3Object",
        compression_type=artifact.compression,
        model_access_config=(
            sagemaker.CfnModel.ModelAccessConfigProperty(accept_eula=True)
            if artifact.accepts_eula
            else None
        ),
    )
    return {"model_data_source": sagemaker.CfnModel.ModelDataSourceProperty(s3_data_source=source)}


def _image_config(image: ImagePlan) -> sagemaker.CfnModel.ImageConfigProperty | None:
    """Returns how SageMaker reaches a registry in the VPC; None for ECR."""
    if image.private_registry is None:
        return None
    arn = image.credentials_function_arn
    return sagemaker.CfnModel.ImageConfigProperty(
        repository_access_mode="Vpc",
        repository_auth_config=(
            None
            if arn is None
            else sagemaker.CfnModel.RepositoryAuthConfigProperty(
                repository_credentials_provider_arn=arn
            )
        ),
    )


def _metrics(
    metrics: Metrics | None,
) -> sagemaker.CfnEndpointConfig.MetricsConfigProperty | None:
    if metrics is None:
        return None
    return sagemaker.CfnEndpointConfig.MetricsConfigProperty(
        enable_enhanced_metrics=metrics.enhanced,
        metric_publish_frequency_in_seconds=metrics.publish_frequency_seconds,
        enable_detailed_observability=metrics.detailed_observability,
    )


def _vpc_of_config(
    vpc: sagemaker.CfnModel.VpcConfigProperty | None,
) -> sagemaker.CfnEndpointConfig.VpcConfigProperty | None:
    if vpc is None:
        return None
    return sagemaker.CfnEndpointConfig.VpcConfigProperty(
        subnets=vpc.subnets, security_group_ids=vpc.security_group_ids
    )


def capture_config(
    capture: DataCapture, place: CapturePlace, key_arn: str | None
) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty:
    """Returns the settings of capture: bodies of other content types are captured in Base64."""
    return sagemaker.CfnEndpointConfig.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=capture.sampling_percent,
        destination_s3_uri=place.uri,
        kms_key_id=key_arn,
        capture_options=[
            sagemaker.CfnEndpointConfig.CaptureOptionProperty(capture_mode=_MODES[each])
            for each in capture.capture
        ],
        capture_content_type_header=(
            sagemaker.CfnEndpointConfig.CaptureContentTypeHeaderProperty(
                json_content_types=["application/json"], csv_content_types=["text/csv"]
            )
        ),
    )


def async_config(
    queue: AsyncInference,
) -> sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty:
    notification = None
    if queue.topic_arns:
        notification = sagemaker.CfnEndpointConfig.AsyncInferenceNotificationConfigProperty(
            success_topic=queue.success_topic_arn,
            error_topic=queue.error_topic_arn,
            include_inference_response_in=topic_types(queue.include_response_in) or None,
        )
    failure = queue.failure_output
    return sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty(
        client_config=sagemaker.CfnEndpointConfig.AsyncInferenceClientConfigProperty(
            max_concurrent_invocations_per_instance=queue.max_concurrent_invocations_per_instance
        ),
        output_config=sagemaker.CfnEndpointConfig.AsyncInferenceOutputConfigProperty(
            kms_key_id=queue.output_key_arn,
            notification_config=notification,
            # SageMaker adds the final slash itself.
            s3_failure_path=None if failure is None else failure.rstrip("/"),
            s3_output_path=queue.output.rstrip("/"),
        ),
    )
