"""The endpoint of `gpt2-autocomplete.yaml` beside this file, in CDK level 1 constructs alone.

It has the properties of Slipway's template, which a test compares. It lacks the function that keeps
scaling and an update apart, the dashboard, the foundation and the image's build.
"""

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as scaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

NAME = "gpt2-autocomplete-production"
VARIANT = "AllTraffic"
LOG_GROUP = f"/aws/sagemaker/Endpoints/{NAME}"


class EndpointStack(cdk.Stack):
    """A GPT-2 endpoint that scales, has alarms, and undoes an update that raises one."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bucket: str,
        digest: str,
        image_tag: str,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        self.topic = self._parameter("NotificationTopicArn")
        log_group = logs.CfnLogGroup(self, "Log", log_group_name=LOG_GROUP, retention_in_days=30)
        log_group.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        model = sagemaker.CfnModel(
            self,
            "Model",
            execution_role_arn=self._role(bucket).attr_arn,
            enable_network_isolation=True,
            primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
                image=f"{self.account}.dkr.ecr.{self.region}.amazonaws.com/slipway/tensorrt:{image_tag}",
                environment={
                    "SLIPWAY_DEFAULT_NEW_TOKENS": "12",
                    "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "5",
                    "SLIPWAY_MAX_BATCH_SIZE": "40",
                    "SLIPWAY_MAX_INPUT_TOKENS": "64",
                    "SLIPWAY_MAX_NEW_TOKENS": "42",
                    "SLIPWAY_MAX_QUEUE_LENGTH": "256",
                    "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "55",
                },
                model_data_source=sagemaker.CfnModel.ModelDataSourceProperty(
                    s3_data_source=sagemaker.CfnModel.S3DataSourceProperty(
                        compression_type="None",
                        s3_data_type="S3Prefix",
                        s3_uri=f"s3://{bucket}/artifacts/{digest}/files/",
                    )
                ),
            ),
        )
        config = sagemaker.CfnEndpointConfig(
            self,
            "Config",
            production_variants=[
                sagemaker.CfnEndpointConfig.ProductionVariantProperty(
                    variant_name=VARIANT,
                    model_name=model.attr_model_name,
                    instance_type="ml.g4dn.xlarge",
                    initial_instance_count=2,
                    initial_variant_weight=1,
                    inference_ami_version="al2023-ami-sagemaker-inference-gpu-4-1",
                    model_data_download_timeout_in_seconds=600,
                    container_startup_health_check_timeout_in_seconds=600,
                    routing_config=sagemaker.CfnEndpointConfig.RoutingConfigProperty(
                        routing_strategy="LEAST_OUTSTANDING_REQUESTS"
                    ),
                )
            ],
        )
        rollback = [
            self._error_rate("NewFleetErrors", config),
            self._latency("NewFleetLatency", config),
        ]
        alarms = [*rollback, self._error_rate("Errors"), self._latency("Latency")]
        routing = sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(
            type="CANARY",
            canary_size=sagemaker.CfnEndpoint.CapacitySizeProperty(
                type="CAPACITY_PERCENT", value=50
            ),
            wait_interval_in_seconds=240,
        )
        endpoint = sagemaker.CfnEndpoint(
            self,
            "Endpoint",
            endpoint_name=NAME,
            endpoint_config_name=config.attr_endpoint_config_name,
            retain_all_variant_properties=True,
            exclude_retained_variant_properties=[
                sagemaker.CfnEndpoint.VariantPropertyProperty(variant_property_type=kept)
                for kept in ("DesiredWeight", "DataCaptureConfig")
            ],
            deployment_config=sagemaker.CfnEndpoint.DeploymentConfigProperty(
                auto_rollback_configuration=sagemaker.CfnEndpoint.AutoRollbackConfigProperty(
                    alarms=[
                        sagemaker.CfnEndpoint.AlarmProperty(alarm_name=alarm.ref)
                        for alarm in rollback
                    ]
                ),
                blue_green_update_policy=sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
                    termination_wait_in_seconds=0, traffic_routing_configuration=routing
                ),
            ),
        )
        for dependency in (log_group, *alarms):
            endpoint.add_resource_dependency(dependency)
        self._scale(endpoint)

    def _parameter(self, name: str) -> str:
        path = {
            "NotificationTopicArn": "notification-topic-arn",
            "ArtifactKeyArn": "artifact-key-arn",
        }
        return cdk.CfnParameter(
            self,
            name,
            type="AWS::SSM::Parameter::Value<String>",
            default=f"/slipway/production/{path[name]}",
        ).value_as_string

    def _role(self, bucket: str) -> iam.CfnRole:
        here = f"{self.region}:{self.account}"
        statements = [
            allow("s3:GetObject", on=f"arn:aws:s3:::{bucket}/artifacts/*"),
            allow(
                "s3:ListBucket",
                on=f"arn:aws:s3:::{bucket}",
                when={"StringLike": {"s3:prefix": "artifacts/*"}},
            ),
            allow("kms:Decrypt", on=self._parameter("ArtifactKeyArn")),
            allow(
                "ecr:BatchCheckLayerAvailability",
                "ecr:BatchGetImage",
                "ecr:GetDownloadUrlForLayer",
                on=f"arn:aws:ecr:{here}:repository/slipway/tensorrt",
            ),
            allow("ecr:GetAuthorizationToken", on="*"),
            allow(
                "logs:CreateLogStream",
                "logs:DescribeLogStreams",
                "logs:PutLogEvents",
                on=f"arn:aws:logs:{here}:log-group:{LOG_GROUP}:*",
            ),
            allow(
                "cloudwatch:PutMetricData",
                on="*",
                when={"StringEquals": {"cloudwatch:namespace": "/aws/sagemaker/Endpoints"}},
            ),
            allow("cloudwatch:DescribeAlarms", on=f"arn:aws:cloudwatch:{here}:alarm:{NAME}-*"),
        ]
        trust = {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"Service": "sagemaker.amazonaws.com"},
            "Condition": {
                "StringEquals": {"aws:SourceAccount": self.account},
                "ArnLike": {"aws:SourceArn": f"arn:aws:sagemaker:{here}:*"},
            },
        }
        return iam.CfnRole(
            self,
            "Role",
            assume_role_policy_document={"Version": "2012-10-17", "Statement": [trust]},
            policies=[
                iam.CfnRole.PolicyProperty(
                    policy_name="Serving",
                    policy_document={"Version": "2012-10-17", "Statement": statements},
                )
            ],
        )

    def _scale(self, endpoint: sagemaker.CfnEndpoint) -> None:
        target = scaling.CfnScalableTarget(
            self,
            "Target",
            service_namespace="sagemaker",
            scalable_dimension="sagemaker:variant:DesiredInstanceCount",
            resource_id=f"endpoint/{NAME}/variant/{VARIANT}",
            min_capacity=2,
            max_capacity=6,
        )
        target.add_resource_dependency(endpoint)
        tracking = scaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty(
            target_value=600,
            scale_in_cooldown=300,
            scale_out_cooldown=60,
            predefined_metric_specification=scaling.CfnScalingPolicy.PredefinedMetricSpecificationProperty(
                predefined_metric_type="SageMakerVariantInvocationsPerInstance"
            ),
        )
        scaling.CfnScalingPolicy(
            self,
            "Policy",
            policy_name="invocations-per-instance",
            policy_type="TargetTrackingScaling",
            scaling_target_id=target.ref,
            target_tracking_scaling_policy_configuration=tracking,
        )

    def _latency(
        self, construct_id: str, fleet: sagemaker.CfnEndpointConfig | None = None
    ) -> cloudwatch.CfnAlarm:
        return cloudwatch.CfnAlarm(
            self,
            construct_id,
            namespace="AWS/SageMaker",
            metric_name="ModelLatency",
            dimensions=dimensions(fleet),
            extended_statistic="p99",
            period=60,
            threshold=600_000,
            comparison_operator="GreaterThanThreshold",
            evaluation_periods=3,
            treat_missing_data="notBreaching",
            alarm_actions=[self.topic],
            ok_actions=[self.topic],
        )

    def _error_rate(
        self, construct_id: str, fleet: sagemaker.CfnEndpointConfig | None = None
    ) -> cloudwatch.CfnAlarm:
        query = cloudwatch.CfnAlarm.MetricDataQueryProperty
        counted = {
            "server_errors": "Invocation5XXErrors",
            "client_errors": "Invocation4XXErrors",
            "model_errors": "InvocationModelErrors",
            "invocations": "Invocations",
        }
        counts = [
            query(
                id=metric_id,
                return_data=False,
                metric_stat=cloudwatch.CfnAlarm.MetricStatProperty(
                    metric=cloudwatch.CfnAlarm.MetricProperty(
                        namespace="AWS/SageMaker",
                        metric_name=metric,
                        dimensions=dimensions(fleet),
                    ),
                    period=60,
                    stat="Sum",
                ),
            )
            for metric_id, metric in counted.items()
        ]
        failures = query(
            id="failures",
            label="Not answered, or 5XX",
            expression="model_errors - client_errors",
            return_data=False,
        )
        rate = query(
            id="rate",
            label="Failed on the server's side (%)",
            expression="100 * MAX([server_errors, failures]) / invocations",
            return_data=True,
        )
        return cloudwatch.CfnAlarm(
            self,
            construct_id,
            metrics=[*counts, failures, rate],
            threshold=1,
            comparison_operator="GreaterThanThreshold",
            evaluation_periods=3,
            treat_missing_data="notBreaching",
            alarm_actions=[self.topic],
            ok_actions=[self.topic],
        )


def allow(*actions: str, on: str, when: object = None) -> dict[str, object]:
    """Returns a statement of a policy."""
    action: object = actions[0] if len(actions) == 1 else list(actions)
    statement = {"Effect": "Allow", "Action": action, "Resource": on}
    return statement | ({"Condition": when} if when else {})


def dimensions(
    fleet: sagemaker.CfnEndpointConfig | None,
) -> list[cloudwatch.CfnAlarm.DimensionProperty]:
    """Returns the dimensions of the endpoint's metrics, or of its newest fleet's."""
    found = {"EndpointName": NAME, "VariantName": VARIANT}
    if fleet:
        found["EndpointConfigName"] = fleet.attr_endpoint_config_name
    return [
        cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value)
        for name, value in found.items()
    ]
