"""The stack of one model, whose resources other modules add."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from slipway.config.names import COMMIT_RULE
from slipway.planning.plan import DeploymentPlan
from slipway.stacks.model_resources import ModelResources


class ModelStack(cdk.Stack):
    """One model in one environment. Renders a plan; decides nothing.

    Attributes:
        plan: the resolved config.
        parts: what every model has.
        alarms: of the model, without those that watch an update.
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
