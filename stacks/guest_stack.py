"""One model on the endpoint of another model: model, log group, copies, alarms."""

import aws_cdk as cdk
from constructs import Construct

from slipway.planning.plan import DeploymentPlan
from slipway.stacks.constructs.alarms import VariantAlarms
from slipway.stacks.constructs.component import ScaledComponent
from slipway.stacks.constructs.component_rollout import guard_copies
from slipway.stacks.constructs.hosting import HostedModel
from slipway.stacks.model_stack import ModelStack


class GuestStack(ModelStack):
    """A model whose copies run on the endpoint of its host, which another stack makes.

    The endpoint has a literal name here, and its role is in a parameter of SSM. Exports of the
    host's stack would refuse changes of the host as long as there is a guest.

    Raises:
        ValueError: the plan has no component.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: DeploymentPlan, env: cdk.Environment
    ) -> None:
        super().__init__(scope, construct_id, plan=plan, env=env)
        if plan.component is None:
            raise ValueError(f"{plan.config.name} has no copies")
        (variant,) = plan.variants
        hosted = HostedModel(self, "Hosting", plan=plan, surroundings=self.parts.surroundings)
        alarms = VariantAlarms(
            self, "Alarms", plan=plan, variant=variant, topic_arn=self.parts.topic_arn
        )
        scaled = ScaledComponent(
            self,
            "Scaled",
            component=plan.component,
            variant=variant,
            endpoint_name=plan.endpoint_name,
            hosted=hosted,
        )
        if plan.rollout is not None:
            guard_copies(scaled.copies, plan.config, alarms.by_name)
        self.parts.conclude()
        self.alarms = alarms.every
