"""One model in one environment: role, model, endpoint, log group, autoscaling, alarms."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.execution_rights import RoleContext, execution_rights
from slipway.planning.placements import DEFAULT_VARIANT_NAME
from slipway.planning.plan import DeploymentPlan
from slipway.planning.rights import Key
from stacks.constructs.alarms import VariantAlarms
from stacks.constructs.asynchronous import async_config
from stacks.constructs.capture import capture_config
from stacks.constructs.component import ScaledComponent
from stacks.constructs.component_rollout import guard_copies
from stacks.constructs.endpoint_update import SCALING_ID, EndpointUpdate
from stacks.constructs.execution_role import ExecutionRole
from stacks.constructs.hosting import HostedEndpoint
from stacks.constructs.mode_rights import ModeRights
from stacks.constructs.rollout import GuardedRollout
from stacks.constructs.scaling import VariantScaling
from stacks.foundation_ids import (
    ARTIFACT_KEY_ARN,
    NOTIFICATION_TOPIC_ARN,
    SECURITY_GROUP_ID,
    read_id,
)
from stacks.role_boundary import limit_roles


class EndpointStack(cdk.Stack):
    """Renders a plan; decides nothing.

    Args:
        scope: the app.
        construct_id: the model's name, which users type.
        plan: the resolved config.
        env: the plan's account and region, for the CDK CLI.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: DeploymentPlan, env: cdk.Environment
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=plan.stack_name,
            description=plan.description,
            env=env,
            termination_protection=plan.termination_protection,
        )
        for key, value in sorted(plan.tags.items()):
            cdk.Tags.of(self).add(key, value)
        limit_roles(self, plan.permissions_boundary_arn)
        key_arn = self._artifact_key_arn(plan) if _uses_artifact_key(plan) else None
        topic_arn = read_id(self, plan.parameter_prefix, NOTIFICATION_TOPIC_ARN)
        log_key_arn = plan.log_key
        if plan.log_key == ARTIFACT_KEY:
            # The environment's key, whose policy lets CloudWatch Logs use it.
            log_key_arn = key_arn
            if plan.artifact_place.is_isolated:
                log_key_arn = read_id(self, plan.parameter_prefix, ARTIFACT_KEY_ARN)
        vpc = self._vpc(plan)
        role_arn, rights = plan.execution_role_arn, list[ModeRights]()
        if role_arn is None:
            role, rights = self._role(plan, key_arn or "", vpc)
            role_arn = role.role_arn
        capture, queue = None, None
        if plan.capture is not None:
            capture_key = key_arn if plan.capture.key == ARTIFACT_KEY else plan.capture.key
            capture = capture_config(plan.capture, capture_key)
        if plan.asynchronous is not None:
            queue = async_config(plan.asynchronous)
        hosting = HostedEndpoint(
            self,
            "Hosting",
            plan=plan,
            role_arn=role_arn,
            log_key_arn=log_key_arn,
            vpc=vpc,
            capture=capture,
            queue=queue,
            rights=rights,
        )
        update = EndpointUpdate(self, "EndpointUpdate", plan=plan, log_key_arn=log_key_arn)
        # The last step before the endpoint: if another step fails, nothing was deregistered.
        update.before.node.add_dependency(hosting.log_group, hosting.config)
        hosting.endpoint.node.add_dependency(update.before)
        alarms = {}
        for variant in plan.variants:
            # Alarms of a single variant have ids without its name, so that renaming the variant
            # keeps them.
            suffix = variant.name if len(plan.variants) > 1 else ""
            alarms[variant.name] = VariantAlarms(
                self,
                f"Alarms{suffix}",
                plan=plan,
                variant=variant,
                topic_arn=topic_arn,
            )
            update.before.node.add_dependency(alarms[variant.name])
        if plan.rollout is not None and plan.component is None:
            rollout = GuardedRollout(
                self,
                "Rollout",
                plan=plan,
                rollout=plan.rollout,
                hosting=hosting,
                alarms=alarms,
                topic_arn=topic_arn,
            )
            update.before.node.add_dependency(rollout)
        if plan.autoscaling is not None:
            after = update.add_after()
            after.node.add_dependency(hosting.endpoint)
            step_alarms = []
            for variant in plan.variants:
                # CloudFormation cannot register a target under a second logical id. The id
                # therefore contains the variant's name, however many variants there are.
                suffix = "" if variant.name == DEFAULT_VARIANT_NAME else variant.name
                scaling = VariantScaling(
                    self,
                    f"{SCALING_ID}{suffix}",
                    scaling=plan.autoscaling,
                    endpoint=plan.endpoint_name,
                    variant=variant,
                    after=after,
                )
                step_alarms += scaling.step_alarms
            if step_alarms:
                update.add_alarms().node.add_dependency(*step_alarms)
        if plan.component is not None:
            (variant,) = plan.variants
            scaled = ScaledComponent(
                self, "Scaled", component=plan.component, variant=variant, hosting=hosting
            )
            if plan.rollout is not None:
                guard_copies(scaled.copies, plan.rollout, alarms[variant.name].by_name)
        for warning in plan.warnings:
            cdk.Annotations.of(self).add_warning_v2(f"slipway:{warning.code}", warning.message)
        cdk.CfnOutput(self, "EndpointName", value=plan.endpoint_name)
        if plan.component is not None:
            cdk.CfnOutput(self, "InferenceComponentName", value=plan.component.name)
        cdk.CfnOutput(self, "ArtifactDigest", value=plan.artifact.digest)
        if plan.termination_protection:
            # The setting is no part of the template, and `cdk diff` compares templates:
            # https://github.com/aws/aws-cdk/issues/32043. The output is a line of the difference.
            cdk.CfnOutput(
                self,
                "TerminationProtection",
                value="on",
                description="CloudFormation refuses to delete this stack.",
            )

    def _artifact_key_arn(self, plan: DeploymentPlan) -> str:
        if plan.artifact_place.is_isolated:
            return self._own_key_arn(plan.artifact_place)
        return read_id(self, plan.parameter_prefix, ARTIFACT_KEY_ARN)

    def _vpc(self, plan: DeploymentPlan) -> sagemaker.CfnModel.VpcConfigProperty | None:
        """Returns the network of the containers."""
        if plan.vpc is None:
            return None
        groups = list(plan.vpc.security_group_ids)
        if not groups:
            groups = [read_id(self, plan.parameter_prefix, SECURITY_GROUP_ID)]
        return sagemaker.CfnModel.VpcConfigProperty(
            subnets=list(plan.vpc.subnet_ids), security_group_ids=groups
        )

    def _role(
        self,
        plan: DeploymentPlan,
        artifact_key_arn: str,
        vpc: sagemaker.CfnModel.VpcConfigProperty | None,
    ) -> tuple[iam.Role, list[ModeRights]]:
        """Returns the role that the stack makes, and what it may do for settings."""
        groups = () if vpc is None else tuple(vpc.security_group_ids)
        context = RoleContext(self.partition, Key(artifact_key_arn), groups)
        serving, *modes = execution_rights(plan, context)
        # An isolated model has another logical id. CloudFormation updates a role before the
        # endpoint, so the same role with other rights would cut off the running fleet. Another role
        # is created before the update, and the old one is deleted after it.
        role_id = "OwnExecutionRole" if plan.artifact_place.is_isolated else "ExecutionRole"
        role = ExecutionRole(self, role_id, plan=plan, serving=serving).role
        return role, [ModeRights(self, policy, role=role) for policy in modes]

    def _own_key_arn(self, place: ArtifactPlace) -> str:
        # Another logical id than the shared key's, because the CDK CLI keeps a parameter's old
        # value, whatever its new default is.
        parameter = cdk.CfnParameter(
            self,
            "OwnArtifactKeyArn",
            type="AWS::SSM::Parameter::Value<String>",
            default=place.key_parameter,
            description=f"Written by the model's own stack: cdk deploy {place.stack_id}",
        )
        return parameter.value_as_string


def _uses_artifact_key(plan: DeploymentPlan) -> bool:
    """Returns whether the stack needs the key: an existing role has its rights already."""
    return (
        plan.execution_role_arn is None
        or (plan.log_key == ARTIFACT_KEY and not plan.artifact_place.is_isolated)
        or (plan.capture is not None and plan.capture.key == ARTIFACT_KEY)
    )
