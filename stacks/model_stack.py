"""The stack of one model, with what every model has: its role, tags, keys and network."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from slipway.config.names import COMMIT_RULE
from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.planning.execution_rights import RoleContext, execution_rights
from slipway.planning.plan import DeploymentPlan
from slipway.planning.statements import Key
from slipway.stacks.constructs.execution_role import ExecutionRole, ModeRights
from slipway.stacks.constructs.hosting import Surroundings
from slipway.stacks.constructs.statements import limit_roles
from slipway.stacks.foundation_ids import (
    ARTIFACT_KEY_ARN,
    NOTIFICATION_TOPIC_ARN,
    SECURITY_GROUP_ID,
    construct_id_of,
    read_id,
)


class ModelStack(cdk.Stack):
    """One model in one environment. Renders a plan; decides nothing.

    Its alarms are without those that watch an update.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: DeploymentPlan, env: cdk.Environment
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=plan.stack_name,
            description=plan.config.description,
            env=env,
            termination_protection=plan.config.endpoint.termination_protection,
        )
        self.plan = plan
        self.alarms: list[cloudwatch.CfnAlarm] = []
        self.parts = ModelResources(self, plan)


def record_commit(app: cdk.App, commit: str) -> None:
    """Writes the project's commit into each model's template, where it changes nothing else.

    CloudFormation updates nothing for a rule, and `cdk diff` hides rules as the CDK's own. It would
    show other metadata of a template for every stack after every commit. A tag of the stack would
    be one of each resource.
    """
    for stack in app.node.children:
        if isinstance(stack, ModelStack):
            # It always holds, and has the form of the CDK's own rule, which AWS is known to take.
            other = cdk.Fn.condition_contains([commit], cdk.Fn.ref("BootstrapVersion"))
            holds = cdk.Fn.condition_not(other)
            assertion = cdk.CfnRuleAssertion(assert_=holds, assert_description="Always holds")
            cdk.CfnRule(stack, COMMIT_RULE, assertions=[assertion])


class ModelResources:
    """The role, the tags, the keys and the network of a model, added to a stack or a construct.

    In a stack of one model, the construct ids are those of the deployed resources, and never
    change. In a construct of another stack, the CDK puts the construct's path before them.
    `key_arn` is None if nothing in the stack needs the artifacts' key.
    """

    def __init__(self, scope: Construct, plan: DeploymentPlan) -> None:
        self.scope, self.plan = scope, plan
        for key, value in sorted(plan.tags.items()):
            cdk.Tags.of(scope).add(key, value)
        limit_roles(scope, plan.environment.permissions_boundary_arn)
        self.key_arn = self._artifact_key_arn(plan) if _uses_artifact_key(plan) else None
        self.topic_arn = read_id(scope, plan.environment.parameter_prefix, NOTIFICATION_TOPIC_ARN)
        self.alarm_prefix = _alarm_prefix(scope)
        log_key_arn, vpc = self._log_key_arn(plan), self._vpc(plan)
        role_arn, rights = self._role(plan, vpc)
        self.surroundings = Surroundings(role_arn, rights, vpc, log_key_arn, self.alarm_prefix)

    def conclude(self) -> None:
        """Adds the plan's warnings, and the outputs that every stack of a model has."""
        plan, scope = self.plan, self.scope
        for warning in plan.warnings:
            cdk.Annotations.of(scope).add_warning_v2(f"slipway:{warning.code}", warning.message)
        cdk.CfnOutput(scope, "EndpointName", value=plan.endpoint_name)
        if plan.component is not None:
            cdk.CfnOutput(scope, "InferenceComponentName", value=plan.component.name)
        cdk.CfnOutput(scope, "ArtifactDigest", value=plan.artifact.digest)
        if plan.config.endpoint.termination_protection:
            # The setting is no part of the template, and `cdk diff` compares templates:
            # https://github.com/aws/aws-cdk/issues/32043. The output is a line of the difference.
            cdk.CfnOutput(
                scope,
                "TerminationProtection",
                value="on",
                description="CloudFormation refuses to delete this stack.",
            )

    def _artifact_key_arn(self, plan: DeploymentPlan) -> str:
        place = plan.artifact_place
        if not place.is_isolated:
            return read_id(self.scope, plan.environment.parameter_prefix, ARTIFACT_KEY_ARN)
        # Another logical id than the shared key's, because the CDK CLI keeps a parameter's old
        # value, whatever its new default is.
        return self._read("OwnArtifactKeyArn", place.key_parameter, "model's own", place.stack_id)

    def _log_key_arn(self, plan: DeploymentPlan) -> str | None:
        """Returns the key of log groups; None for CloudWatch Logs' own."""
        if plan.environment.log_key != ARTIFACT_KEY:
            return plan.environment.log_key
        # The environment's key, whose policy lets CloudWatch Logs use it.
        if plan.artifact_place.is_isolated:
            return read_id(self.scope, plan.environment.parameter_prefix, ARTIFACT_KEY_ARN)
        return self.key_arn

    def _vpc(self, plan: DeploymentPlan) -> sagemaker.CfnModel.VpcConfigProperty | None:
        if plan.vpc is None:
            return None
        groups = list(plan.vpc.security_group_ids)
        if not groups:
            groups = [read_id(self.scope, plan.environment.parameter_prefix, SECURITY_GROUP_ID)]
        return sagemaker.CfnModel.VpcConfigProperty(
            subnets=list(plan.vpc.subnet_ids), security_group_ids=groups
        )

    def _role(
        self, plan: DeploymentPlan, vpc: sagemaker.CfnModel.VpcConfigProperty | None
    ) -> tuple[str, list[ModeRights]]:
        """Returns the ARN of the role, and what it may do for settings if the stack makes it."""
        if plan.config.endpoint.execution_role_arn is not None:
            return plan.config.endpoint.execution_role_arn, []
        if plan.is_adapter:
            return "", []  # nothing in its stack runs
        if plan.host is not None:
            # SageMaker runs every copy on the endpoint with this role.
            parameter = plan.role_parameter
            return self._read("HostExecutionRoleArn", parameter, "host's", plan.host), []
        groups = () if vpc is None else tuple(vpc.security_group_ids)
        context = RoleContext(
            cdk.Stack.of(self.scope).partition, Key(self.key_arn or ""), groups, self.alarm_prefix
        )
        serving, *modes = execution_rights(plan, context)
        # An isolated model has another logical id. CloudFormation updates a role before the
        # endpoint, so the same role with other rights would cut off the running fleet. Another role
        # is created before the update, and the old one is deleted after it.
        role_id = "OwnExecutionRole" if plan.artifact_place.is_isolated else "ExecutionRole"
        role = ExecutionRole(self.scope, role_id, plan=plan, serving=serving).role
        return role.role_arn, [ModeRights(self.scope, policy, role=role) for policy in modes]

    def _read(self, construct_id: str, name: str, whose: str, stack_id: str) -> str:
        """Returns the value of a parameter in SSM that another model's or key's stack writes."""
        parameter = cdk.CfnParameter(
            self.scope,
            construct_id,
            type="AWS::SSM::Parameter::Value<String>",
            default=name,
            description=f"Written by the {whose} stack: cdk deploy {stack_id}",
        )
        return parameter.value_as_string


def _alarm_prefix(scope: Construct) -> str:
    """Returns how CloudFormation begins the names of alarms in a stack or a construct.

    A stack's name and a hyphen, and the construct's path without what is no letter or digit.
    """
    stack = cdk.Stack.of(scope)
    if cdk.Stack.is_stack(scope):
        return f"{stack.stack_name}-"
    topic_id = construct_id_of(NOTIFICATION_TOPIC_ARN)
    topic = scope.node.find_child(topic_id)
    assert isinstance(topic, cdk.CfnParameter)  # noqa: S101  # for the type checker
    logical_id: str = stack.resolve(topic.logical_id)
    return f"{stack.stack_name}-{logical_id.rpartition(topic_id)[0]}"


def _uses_artifact_key(plan: DeploymentPlan) -> bool:
    """Returns whether the stack needs the key: an existing role has its rights already."""
    return not plan.is_adapter and (
        (plan.config.endpoint.execution_role_arn is None and plan.host is None)
        or (plan.environment.log_key == ARTIFACT_KEY and not plan.artifact_place.is_isolated)
        or (plan.capture is not None and plan.capture.key == ARTIFACT_KEY)
    )
