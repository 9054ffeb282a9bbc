"""One model on the endpoint of another model, or one LoRA adapter in the other's copies."""

import aws_cdk as cdk
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from slipway.planning.adapters import ARCHIVE
from slipway.planning.plan import DeploymentPlan
from slipway.stacks.constructs.alarms import VariantAlarms
from slipway.stacks.constructs.component import SCALED_COPIES, ScaledComponent, wake_policy
from slipway.stacks.constructs.hosting import HostedModel
from slipway.stacks.constructs.rollout import guard_copies
from slipway.stacks.constructs.scaling import add_alarm, add_policy
from slipway.stacks.model_stack import ModelStack

_Of = sagemaker.CfnInferenceComponent


class GuestStack(ModelStack):
    """A model whose copies run on the endpoint of its host, which another stack makes.

    The endpoint has a literal name here, and its role is in a parameter of SSM. Exports of the
    host's stack would refuse changes of the host as long as there is a guest.
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


class AdapterStack(ModelStack):
    """An adapter component, which the copies of its base load.

    The names of endpoint and base are literal, so that the stack of the base never changes. No
    document says whether a request to an adapter wakes its base. So the stack has an alarm of the
    adapter's own, whose policy adds a copy of the base.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: DeploymentPlan, env: cdk.Environment
    ) -> None:
        super().__init__(scope, construct_id, plan=plan, env=env)
        (variant,) = plan.variants
        alarms = VariantAlarms(
            self, "Alarms", plan=plan, variant=variant, topic_arn=self.parts.topic_arn
        )
        _Of(
            self,
            "Component",
            # Literal, because the metrics of requests have the name.
            inference_component_name=plan.stack_name,
            endpoint_name=plan.endpoint_name,
            specification=_Of.InferenceComponentSpecificationProperty(
                base_inference_component_name=plan.endpoint_name,
                container=_Of.InferenceComponentContainerSpecificationProperty(
                    artifact_url=f"{plan.artifact.s3_uri}{ARCHIVE}"
                ),
            ),
        )
        wake = wake_policy(plan.stack_name, of=plan.config.name)
        target_id = f"inference-component/{plan.endpoint_name}|{SCALED_COPIES}"
        add_alarm(self, "Asleep", wake, add_policy(self, policy=wake, target_id=target_id))
        self.parts.conclude()
        self.alarms = alarms.every
