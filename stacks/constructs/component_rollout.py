"""How an update of an inference component replaces the copies, and the alarms that undo it."""

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker

from slipway.config.schema import ModelConfig
from slipway.planning.rollout import describe_rollout

_Of = sagemaker.CfnInferenceComponent


def guard_copies(
    copies: sagemaker.CfnInferenceComponent,
    config: ModelConfig,
    alarms: Mapping[str, cloudwatch.CfnAlarm],
) -> None:
    """Makes SageMaker replace the copies in batches, and undo an update by alarms.

    The metrics of a component do not tell old copies from new copies, so the alarms watch both.
    """
    rollout = config.rollout
    batch = _size(rollout.step_percent, rollout.step_count)
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
                rollout.rollback_step_percent, rollout.rollback_step_count
            ),
            wait_interval_in_seconds=rollout.wait_seconds,
        ),
    )
    # `cdk diff` and `cdk deploy` print it beside the changes.
    described = "; ".join(describe_rollout(config))
    cdk.Annotations.of(copies).add_info(f"Rollout of the next change: {described}.")


def _size(
    percent: int | None, count: int | None
) -> _Of.InferenceComponentCapacitySizeProperty | None:
    if count is not None:
        return _Of.InferenceComponentCapacitySizeProperty(type="COPY_COUNT", value=count)
    if percent is None:
        return None
    return _Of.InferenceComponentCapacitySizeProperty(type="CAPACITY_PERCENT", value=percent)
