"""One LoRA adapter in the copies of another model: the component, its alarms, and its wake."""

import aws_cdk as cdk
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from slipway.planning.adapters import ARCHIVE
from slipway.planning.plan import DeploymentPlan
from slipway.stacks.constructs.alarms import VariantAlarms
from slipway.stacks.constructs.component import SCALED_COPIES, wake_policy
from slipway.stacks.constructs.step_scaling import add_alarm, add_policy
from slipway.stacks.model_stack import ModelStack

_Of = sagemaker.CfnInferenceComponent


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
