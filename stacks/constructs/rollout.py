"""How an update of the endpoint moves the traffic, and the alarms that undo it."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import TypeVar

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from slipway.config.schema import ModelConfig
from slipway.config.sections.rollout import Rollout
from slipway.planning.plan import DeploymentPlan
from slipway.planning.rollout import (
    ALL_AT_ONCE,
    CANARY,
    LINEAR,
    ROLLING,
    describe_rollout,
    new_fleet_alarms,
)
from slipway.stacks.constructs.alarms import VariantAlarms
from slipway.stacks.constructs.hosting import HostedEndpoint

_Of = sagemaker.CfnInferenceComponent
_SizeOfInstances = sagemaker.CfnEndpoint.CapacitySizeProperty
_SizeOfCopies = _Of.InferenceComponentCapacitySizeProperty
_Size = TypeVar("_Size")
_ROUTING = {ALL_AT_ONCE: "ALL_AT_ONCE", CANARY: "CANARY", LINEAR: "LINEAR"}


class GuardedRollout(Construct):
    """Makes SageMaker update the endpoint in the plan's steps, and undo an update by alarms.

    An alarm on requests watches only the fleet of the stack's endpoint configuration: during an
    update the new fleet. A small share of failing requests then raises it too, and a failing old
    fleet does not stop the update that repairs it. CloudFormation moves these alarms to the new
    configuration before it updates the endpoint, and back after a rollback. The metrics of machines
    are not published for each fleet, so their alarms watch both.

    The alarms name the endpoint literally, so the endpoint can refer to them.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: DeploymentPlan,
        rollout: Rollout,
        hosting: HostedEndpoint,
        alarms: Mapping[str, VariantAlarms],
        topic_arn: str,
    ) -> None:
        super().__init__(scope, construct_id)
        undoing: list[cloudwatch.CfnAlarm] = []
        for variant in plan.variants:
            new_fleet = VariantAlarms(
                self,
                f"NewFleet{variant.name if len(plan.variants) > 1 else ''}",
                plan=plan,
                variant=variant,
                topic_arn=topic_arn,
                names=new_fleet_alarms(plan.config),
                config_name=hosting.config.attr_endpoint_config_name,
            )
            by_name = {**alarms[variant.name].by_name, **new_fleet.by_name}
            undoing += [by_name[name] for name in rollout.rollback_alarms]
        hosting.endpoint.deployment_config = deployment = _deployment_config(rollout, undoing)
        # UpdateEndpoint refuses the configuration that the endpoint serves already. Another rollout
        # alone therefore makes another configuration.
        stack = cdk.Stack.of(self)
        digest = hashlib.sha256(json.dumps(stack.resolve(deployment), sort_keys=True).encode())
        own_id = f"{stack.get_logical_id(hosting.config)}{digest.hexdigest()[:8]}"
        hosting.config.override_logical_id(own_id)
        # `cdk diff` and `cdk deploy` print it beside the changes.
        cdk.Annotations.of(hosting.endpoint).add_info(
            f"Rollout of the next change: {'; '.join(describe_rollout(plan.config))}."
        )


def _deployment_config(
    rollout: Rollout, alarms: list[cloudwatch.CfnAlarm]
) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
    rollback = None
    if alarms:
        rollback = sagemaker.CfnEndpoint.AutoRollbackConfigProperty(
            alarms=[sagemaker.CfnEndpoint.AlarmProperty(alarm_name=alarm.ref) for alarm in alarms]
        )
    step = _size(_SizeOfInstances, rollout.step_percent, rollout.step_count)
    if rollout.strategy == ROLLING and step is not None:
        return sagemaker.CfnEndpoint.DeploymentConfigProperty(
            auto_rollback_configuration=rollback,
            rolling_update_policy=sagemaker.CfnEndpoint.RollingUpdatePolicyProperty(
                maximum_batch_size=step,
                maximum_execution_timeout_in_seconds=rollout.max_execution_seconds,
                rollback_maximum_batch_size=_size(
                    _SizeOfInstances, rollout.rollback_step_percent, rollout.rollback_step_count
                ),
                wait_interval_in_seconds=rollout.wait_seconds,
            ),
        )
    return sagemaker.CfnEndpoint.DeploymentConfigProperty(
        auto_rollback_configuration=rollback,
        blue_green_update_policy=sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
            maximum_execution_timeout_in_seconds=rollout.max_execution_seconds,
            termination_wait_in_seconds=rollout.termination_wait_seconds,
            traffic_routing_configuration=sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(
                type=_ROUTING[rollout.strategy],
                canary_size=step if rollout.strategy == CANARY else None,
                linear_step_size=step if rollout.strategy == LINEAR else None,
                wait_interval_in_seconds=rollout.wait_seconds,
            ),
        ),
    )


def _size(make: Callable[..., _Size], percent: int | None, count: int | None) -> _Size | None:
    """Returns the size of a step, in instances or copies, as the structure that is made."""
    if count is not None:
        unit = "COPY_COUNT" if make is _SizeOfCopies else "INSTANCE_COUNT"
        return make(type=unit, value=count)
    return None if percent is None else make(type="CAPACITY_PERCENT", value=percent)


def guard_copies(
    copies: sagemaker.CfnInferenceComponent,
    config: ModelConfig,
    alarms: Mapping[str, cloudwatch.CfnAlarm],
) -> None:
    """Makes SageMaker replace the copies in batches, and undo an update by alarms.

    The metrics of a component do not tell old copies from new copies, so the alarms watch both.
    """
    rollout = config.rollout
    batch = _size(_SizeOfCopies, rollout.step_percent, rollout.step_count)
    if batch is None:
        raise ValueError("a rolling update has the size of a batch")
    undoing = [_Of.AlarmProperty(alarm_name=alarms[name].ref) for name in rollout.rollback_alarms]
    copies.deployment_config = _Of.InferenceComponentDeploymentConfigProperty(
        auto_rollback_configuration=(
            _Of.AutoRollbackConfigurationProperty(alarms=undoing) if undoing else None
        ),
        rolling_update_policy=_Of.InferenceComponentRollingUpdatePolicyProperty(
            maximum_batch_size=batch,
            maximum_execution_timeout_in_seconds=rollout.max_execution_seconds,
            rollback_maximum_batch_size=_size(
                _SizeOfCopies, rollout.rollback_step_percent, rollout.rollback_step_count
            ),
            wait_interval_in_seconds=rollout.wait_seconds,
        ),
    )
    # `cdk diff` and `cdk deploy` print it beside the changes.
    described = "; ".join(describe_rollout(config))
    cdk.Annotations.of(copies).add_info(f"Rollout of the next change: {described}.")
