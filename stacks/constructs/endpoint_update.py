"""Resources around the update of an endpoint, so that autoscaling does not block the update."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from slipway.config.names import KEPT_LOGS
from slipway.config.sections.scaling import Schedule
from slipway.planning.plan import DeploymentPlan, VariantPlan
from slipway.planning.statements import allow
from stacks.constructs.handler_function import add_handler_function
from stacks.constructs.scaling_policies import policies_of, step_policies
from stacks.constructs.statements import acknowledge_wildcards

RESOURCE_TYPE = "Custom::SlipwayScaling"
# Begins the ids of the constructs that scale variants.
SCALING_ID = "Scaling"
# The longest time that Lambda allows: the function waits for an endpoint that is being scaled.
_FUNCTION_TIMEOUT_SECONDS = 900
# Otherwise CloudFormation would wait for an hour if the function died without an answer.
_SERVICE_TIMEOUT_SECONDS = 1200


class EndpointUpdate(Construct):
    """A function, and custom resources through which it is called before the endpoint is updated.

    Every endpoint has it: an endpoint without autoscaling may have had autoscaling, and its targets
    are still registered when it is updated. `add_after` adds the call after the update, which only
    an endpoint with autoscaling needs. `add_alarms` adds the call after step policies' alarms.

    Args:
        log_key_arn: the key of the function's log group; None for CloudWatch Logs' own.

    Attributes:
        before: the last step before the endpoint is updated.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: DeploymentPlan, log_key_arn: str | None
    ) -> None:
        super().__init__(scope, construct_id)
        self._plan = plan
        self._function = self._add_function(log_key_arn)
        variants = [
            (variant.name, variant.instance_types, plan.config.autoscaling is not None)
            for variant in plan.variants
        ]
        # A new resource for each change that deregisters targets. After a rollback, CloudFormation
        # deletes the new resource last of all, and its deletion registers the targets again.
        digest = hashlib.sha256(json.dumps(variants).encode()).hexdigest()[:8]
        # With copies, no variant is a scalable target, so there is nothing to remember. *Before*
        # stays, because its deletion keeps the end of the log.
        undo = None if plan.component else self._call(f"Undo{digest}", "Undo")
        self.before = self._call("Before", "Before")
        if undo is not None:
            self.before.node.add_dependency(undo)

    def add_after(self) -> cdk.CustomResource:
        """Adds the call after the update and returns it."""
        return self._call("After", "After")

    def add_alarms(self) -> cdk.CustomResource:
        """Adds the call after the alarms of step policies and returns it."""
        return self._call("Alarms", "Alarms")

    def _call(self, construct_id: str, step: str) -> cdk.CustomResource:
        plan = self._plan
        properties: dict[str, Any] = {"EndpointName": plan.endpoint_name, "Step": step}
        if step != "Undo":
            properties["Variants"] = [self._variant(variant) for variant in plan.variants]
            if plan.config.autoscaling is not None:
                # CloudFormation tags the targets that it creates; targets registered again get the
                # same tags.
                properties["TargetTags"] = dict(sorted(plan.tags.items()))
        if step == "Alarms":
            # CloudFormation calls the function whenever it may have put an alarm again.
            properties["AlarmsDigest"] = self._alarms_digest()
        return cdk.CustomResource(
            self,
            construct_id,
            service_token=self._function.attr_arn,
            resource_type=RESOURCE_TYPE,
            service_timeout=cdk.Duration.seconds(_SERVICE_TIMEOUT_SECONDS),
            properties=properties,
        )

    def _variant(self, variant: VariantPlan) -> Mapping[str, Any]:
        """Returns a variant in the form that the function compares with the live variant."""
        described: dict[str, Any] = {
            "Name": variant.name,
            "InstanceTypes": list(variant.instance_types),
        }
        scaling = self._plan.config.autoscaling
        if scaling is not None:
            policies = policies_of(scaling, self._plan.endpoint_name, variant)
            described["Scaling"] = {
                "MinCapacity": scaling.min_instance_count,
                "MaxCapacity": scaling.max_instance_count,
                # As text, because CloudFormation would make every number in it a text.
                "Policies": json.dumps([policy.as_request for policy in policies]),
            }
            if scaling.schedules:
                described["Scaling"]["Schedules"] = [
                    _schedule(schedule) for schedule in scaling.schedules
                ]
        return described

    def _alarms_digest(self) -> str:
        plan, scaling = self._plan, self._plan.config.autoscaling
        policies = [
            asdict(policy)
            for variant in plan.variants
            if scaling is not None
            for policy in step_policies(scaling, plan.endpoint_name, variant)
        ]
        return hashlib.sha256(json.dumps(policies).encode()).hexdigest()[:8]

    def _add_function(self, log_key_arn: str | None) -> lambda_.CfnFunction:
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
            allow("SeeWhatServes", ["sagemaker:DescribeEndpoint"], endpoint),
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
        # No other stack has alarms of such names: a capital letter never follows a stack's name.
        step_alarms = (
            f"arn:{stack.partition}:cloudwatch:{place}:alarm:{plan.stack_name}-{SCALING_ID}*"
        )
        if plan.config.autoscaling is not None and plan.config.autoscaling.step_policy_count:
            statements.append(allow("PointStepAlarms", ["cloudwatch:PutMetricAlarm"], step_alarms))
        function = add_handler_function(
            self,
            module="endpoint_update.handler",
            description="Slipway: deregisters scalable targets while their endpoint changes",
            timeout_seconds=_FUNCTION_TIMEOUT_SECONDS,
            role_description="Deregisters scalable targets while their endpoint changes",
            policy_name="Scaling",
            statements=statements,
            log_key_arn=log_key_arn,
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


def _schedule(schedule: Schedule) -> Mapping[str, Any]:
    """Returns a schedule in the form of PutScheduledAction."""
    time_zone = schedule.zone_of_expression
    zone = {"Timezone": time_zone} if time_zone else {}
    return {
        "ScheduledActionName": schedule.name,
        "Schedule": schedule.at,
        **zone,
        "ScalableTargetAction": {
            "MinCapacity": schedule.min_instance_count,
            "MaxCapacity": schedule.max_instance_count,
        },
    }
