"""Resources around the update of an endpoint, so that autoscaling does not block the update."""

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from slipway.config.names import KEPT_LOGS
from slipway.planning.plan import DeploymentPlan
from slipway.planning.statements import allow
from slipway.stacks.constructs.handler_function import add_handler_function
from slipway.stacks.constructs.hosting import HostedEndpoint, Surroundings
from slipway.stacks.constructs.scaling_policies import digest_of
from slipway.stacks.constructs.statements import acknowledge_wildcards

RESOURCE_TYPE = "Custom::SlipwayScaling"
# Begins the ids of the constructs that scale variants.
SCALING_ID = "Scaling"
# The longest time that Lambda allows: the function waits for an endpoint that is being scaled.
_FUNCTION_TIMEOUT_SECONDS = 900
# Otherwise CloudFormation would wait for an hour if the function died without an answer.
_SERVICE_TIMEOUT_SECONDS = 1200


class EndpointUpdate(Construct):
    """A function, and custom resources through which it is called around an endpoint's update.

    Every endpoint has them: an endpoint without autoscaling may have had autoscaling, and its
    targets are still registered when it is updated. Their properties are names, and the weights of
    several variants, so that a setting changes in one place of the template. `before` is the last
    step before the endpoint is updated, and `after` the first one after it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: DeploymentPlan,
        hosting: HostedEndpoint,
        given: Surroundings,
    ) -> None:
        super().__init__(scope, construct_id)
        self._plan = plan
        held = _held(plan, given)
        module = "endpoint_update.handler" if cdk.Stack.is_stack(scope) else "beside_others"
        self._function = self._add_function(module, held, given)
        is_scaled = plan.config.autoscaling is not None
        variants = [(each.name, each.instance_types, is_scaled) for each in plan.variants]
        names = {
            "ConfigName": hosting.config.attr_endpoint_config_name,
            "Scaled": [each.name for each in plan.variants if is_scaled],
        }
        self.before = self._call("Before", "Before", {**names, "Held": held} if held else names)
        # With copies, no variant is a scalable target, and there is nothing to remember.
        if plan.component is None:
            # A new resource for each change that deregisters targets. After a rollback,
            # CloudFormation deletes the new resource last of all, and its deletion registers the
            # targets again. It comes first by way of the configuration, which changes whenever Undo
            # is new: a difference then shows no further resource.
            undo = self._call(f"Undo{digest_of(variants)}", "Undo", {})
            hosting.config.node.add_dependency(undo)
        # The last step before the endpoint: if another step fails, nothing was deregistered.
        self.before.node.add_dependency(hosting.log_group)
        hosting.endpoint.node.add_dependency(self.before)
        weights = {each.name: each.weight for each in plan.variants}
        shared = {"Weights": weights} if plan.shares_by_weight else {}
        self.after = self._call("After", "After", {**names, **shared})
        self.after.node.add_dependency(hosting.endpoint)

    def _call(
        self, construct_id: str, step: str, properties: Mapping[str, Any]
    ) -> cdk.CustomResource:
        return cdk.CustomResource(
            self,
            construct_id,
            service_token=self._function.attr_arn,
            resource_type=RESOURCE_TYPE,
            service_timeout=cdk.Duration.seconds(_SERVICE_TIMEOUT_SECONDS),
            properties={"EndpointName": self._plan.endpoint_name, "Step": step, **properties},
        )

    def _add_function(
        self, module: str, held: Mapping[str, Any], given: Surroundings
    ) -> lambda_.CfnFunction:
        stack, plan = cdk.Stack.of(self), self._plan
        place = f"{plan.environment.region}:{plan.environment.account}"
        endpoint = f"arn:{stack.partition}:sagemaker:{place}:endpoint/{plan.endpoint_name.lower()}"
        configs = f"arn:{stack.partition}:sagemaker:{place}:endpoint-config/*"
        targets = f"arn:{stack.partition}:application-autoscaling:{place}:scalable-target/*"
        alarms = (
            f"arn:{stack.partition}:cloudwatch:{place}:alarm:"
            f"TargetTracking-endpoint/{plan.endpoint_name}/variant/*"
        )
        statements = [
            allow(
                "SeeWhatTheStackMade",
                ["cloudformation:DescribeStacks", "cloudformation:ListStackResources"],
                stack.stack_id,
            ),
            allow("SeeWhatServes", ["sagemaker:DescribeEndpoint", "sagemaker:ListTags"], endpoint),
            allow("SeeItsInstances", ["sagemaker:DescribeEndpointConfig"], configs),
            allow(
                "SeeTargets",
                [
                    "application-autoscaling:DescribeScalableTargets",
                    "application-autoscaling:DescribeScalingPolicies",
                    "application-autoscaling:DescribeScheduledActions",
                ],
                "*",
            ),
            allow(
                "ChangeTargets",
                [
                    "application-autoscaling:DeregisterScalableTarget",
                    "application-autoscaling:PutScalingPolicy",
                    "application-autoscaling:PutScheduledAction",
                    "application-autoscaling:RegisterScalableTarget",
                ],
                targets,
                StringEquals={"application-autoscaling:service-namespace": "sagemaker"},
            ),
            allow("TagTargets", ["application-autoscaling:TagResource"], targets),
            # The rights that Application Auto Scaling requires of its caller.
            allow("ScaleTheEndpoint", ["sagemaker:UpdateEndpointWeightsAndCapacities"], endpoint),
            allow("SeeAlarms", ["cloudwatch:DescribeAlarms"], "*"),
            allow(
                "KeepItsAlarms", ["cloudwatch:DeleteAlarms", "cloudwatch:PutMetricAlarm"], alarms
            ),
        ]
        log, kept = (
            f"arn:{stack.partition}:logs:{place}:log-group:{group}:*"
            for group in (plan.log_group_name, f"{KEPT_LOGS}{plan.endpoint_name}")
        )
        statements += [
            allow("FindLogs", ["logs:DescribeLogGroups"], "*"),
            allow("ReadItsLog", ["logs:DescribeLogStreams", "logs:GetLogEvents"], log),
            allow(
                "KeepItsLog",
                [
                    "logs:CreateLogGroup",
                    "logs:CreateLogStream",
                    "logs:DeleteLogGroup",
                    "logs:PutLogEvents",
                    "logs:PutRetentionPolicy",
                ],
                kept,
            ),
        ]
        if "SubnetIds" in held:
            statements.append(allow("SeeInterfaces", ["ec2:DescribeNetworkInterfaces"], "*"))
        if "VolumeKeyArn" in held:
            statements.append(allow("SeeGrants", ["kms:ListGrants"], held["VolumeKeyArn"]))
        # No other stack has alarms of such names: a capital letter never follows a stack's name.
        # The CDK leaves an id out that ends the id before it.
        scaling = f"{given.alarm_prefix.removesuffix(SCALING_ID)}{SCALING_ID}"
        step_alarms = f"arn:{stack.partition}:cloudwatch:{place}:alarm:{scaling}*"
        if plan.config.autoscaling is not None and plan.config.autoscaling.step_policy_count:
            statements.append(allow("PointStepAlarms", ["cloudwatch:PutMetricAlarm"], step_alarms))
        function = add_handler_function(
            self,
            module=module,
            description="Slipway: deregisters scalable targets while their endpoint changes",
            timeout_seconds=_FUNCTION_TIMEOUT_SECONDS,
            role_description="Deregisters scalable targets while their endpoint changes",
            policy_name="Scaling",
            statements=statements,
            log_key_arn=given.log_key_arn,
        )
        acknowledge_wildcards(
            function.role,
            {
                "*": "These operations only describe, and their API knows no narrower resource.",
                configs: "CloudFormation generates the names of endpoint configurations.",
                targets: "The ids of scalable targets are random; the namespace is a condition.",
                alarms: "Application Auto Scaling generates the names of its alarms.",
                step_alarms: "CloudFormation generates the end of an alarm's name.",
                log: "SageMaker chooses the names of a log's streams.",
                kept: "SageMaker chooses the names of a log's streams.",
            },
        )
        return function.resource


def _held(plan: DeploymentPlan, given: Surroundings) -> Mapping[str, Any]:
    """Returns what SageMaker gives back after the endpoint, and the role that it needs for it."""
    key = plan.config.endpoint.volume_key_arn
    # Without rights, the role is not the stack's, and outlives it.
    if not given.rights or (given.vpc is None and key is None):
        return {}
    held: dict[str, Any] = {"RoleArn": given.role_arn, "RoleId": given.rights[0].role.role_id}
    if given.vpc is not None:
        held |= {"SubnetIds": given.vpc.subnets, "SecurityGroupIds": given.vpc.security_group_ids}
    return held if key is None else {**held, "VolumeKeyArn": key}
