"""One model in one environment: role, model, endpoint, logs, autoscaling, alarms, dashboard."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.planning.placements import DEFAULT_VARIANT_NAME
from slipway.planning.plan import DeploymentPlan
from slipway.stacks.constructs.alarms import VariantAlarms
from slipway.stacks.constructs.component import ScaledComponent
from slipway.stacks.constructs.dashboard import EndpointDashboard
from slipway.stacks.constructs.endpoint_update import SCALING_ID, EndpointUpdate
from slipway.stacks.constructs.hosting import HostedEndpoint, async_config, capture_config
from slipway.stacks.constructs.rollout import GuardedRollout, guard_copies
from slipway.stacks.constructs.scaling import VariantScaling
from slipway.stacks.model_stack import ModelResources, ModelStack


class EndpointStack(ModelStack):
    def __init__(
        self, scope: Construct, construct_id: str, *, plan: DeploymentPlan, env: cdk.Environment
    ) -> None:
        super().__init__(scope, construct_id, plan=plan, env=env)
        self.alarms = add_endpoint(self.parts)


def add_endpoint(parts: ModelResources) -> list[cloudwatch.CfnAlarm]:
    """Adds an endpoint of the model's own beside what every model has, and returns its alarms."""
    scope, plan = parts.scope, parts.plan
    settings = plan.config.endpoint
    capture, queue = None, None
    if plan.capture is not None and settings.data_capture is not None:
        capture_key = parts.key_arn if plan.capture.key == ARTIFACT_KEY else plan.capture.key
        capture = capture_config(settings.data_capture, plan.capture, capture_key)
    if settings.queue is not None:
        queue = async_config(settings.queue)
    hosting = HostedEndpoint(
        scope,
        "Hosting",
        plan=plan,
        surroundings=parts.surroundings,
        capture=capture,
        queue=queue,
    )
    update = EndpointUpdate(
        scope,
        "EndpointUpdate",
        plan=plan,
        hosting=hosting,
        given=parts.surroundings,
    )
    alarms = {}
    for variant in plan.variants:
        # Alarms of a single variant have ids without its name, so that renaming the variant
        # keeps them.
        suffix = variant.name if len(plan.variants) > 1 else ""
        alarms[variant.name] = VariantAlarms(
            scope,
            f"Alarms{suffix}",
            plan=plan,
            variant=variant,
            topic_arn=parts.topic_arn,
        )
        update.before.node.add_dependency(alarms[variant.name])
    if plan.rollout is not None and plan.component is None:
        rollout = GuardedRollout(
            scope,
            "Rollout",
            plan=plan,
            rollout=plan.rollout,
            hosting=hosting,
            alarms=alarms,
            topic_arn=parts.topic_arn,
        )
        update.before.node.add_dependency(rollout)
    if plan.config.autoscaling is not None:
        for variant in plan.variants:
            # CloudFormation cannot register a target under a second logical id. The id
            # therefore contains the variant's name, however many variants there are.
            suffix = "" if variant.name == DEFAULT_VARIANT_NAME else variant.name
            VariantScaling(
                scope,
                f"{SCALING_ID}{suffix}",
                scaling=plan.config.autoscaling,
                endpoint=plan.endpoint_name,
                variant=variant,
                after=update.after,
            )
    if plan.component is not None:
        (variant,) = plan.variants
        scaled = ScaledComponent(
            scope,
            "Scaled",
            component=plan.component,
            variant=variant,
            endpoint_name=hosting.endpoint.attr_endpoint_name,
            hosted=hosting,
        )
        if plan.rollout is not None:
            guard_copies(scaled.copies, plan.config, alarms[variant.name].by_name)
    if plan.dashboard_name is not None:
        EndpointDashboard(scope, "Monitoring", plan=plan, alarms=alarms)
    if plan.guests and settings.execution_role_arn is None:
        # A parameter, because an export could not change while there is a guest.
        ssm.CfnParameter(
            scope,
            "RoleOfCopies",
            name=plan.role_parameter,
            type="String",
            value=parts.surroundings.role_arn,
        )
    parts.conclude()
    return [alarm for made in alarms.values() for alarm in made.every]
