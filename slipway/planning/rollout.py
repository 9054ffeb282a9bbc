"""The strategies of rollouts: the alarms that watch a new fleet, and a rollout in words."""

from slipway.config.alarm_kinds import REQUESTS
from slipway.config.schema import ModelConfig
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.config.sections.rollout import Rollout

ALL_AT_ONCE, CANARY, LINEAR, ROLLING = "all_at_once", "canary", "linear", "rolling"


def fleet_bounds(config: ModelConfig) -> tuple[int, int]:
    """Returns the fewest and the most instances, or copies, that an update may replace.

    With several variants these are of the smallest and of the largest variant.
    """
    endpoint, scaling = config.endpoint, config.autoscaling
    if endpoint.copies is not None:
        # Without a copy there is nothing to replace in steps.
        return max(1, endpoint.copies.smallest_count), endpoint.copies.largest_count
    if scaling is not None:
        return scaling.smallest_count, scaling.largest_count
    counts = [each.instance_count or endpoint.instance_count for each in endpoint.variants]
    counts = counts or [endpoint.instance_count]
    return min(counts), max(counts)


def new_fleet_alarms(config: ModelConfig) -> tuple[str, ...]:
    """Returns the rollback alarms whose metrics SageMaker also publishes for each fleet.

    The metrics of requests have the dimension EndpointConfigName, and the metrics of machines do
    not. AWS lists no such dimension for the metrics of asynchronous endpoints, and the metrics of
    an inference component name the component alone. Sources, read 2026-11-24:
    https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-configuration.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-monitor.html
    """
    if config.endpoint.mode != "realtime":
        return ()
    names = config.rollout.rollback_alarms
    return tuple(name for name in names if ALARM_KINDS[name].watch.group is REQUESTS)


# CloudFormation's limit on an endpoint's update: `handlers.update.timeoutInMinutes` in AWS's schema
# of AWS::SageMaker::Endpoint.
_CLOUDFORMATION_MINUTES = 970


def describe_rollout(config: ModelConfig) -> tuple[str, str, str]:
    """Returns the steps, the time, and the alarms that undo the update, one line each."""
    rollout, (fewest, _) = config.rollout, fleet_bounds(config)
    undone = _undone(config, "all copies" if config.endpoint.copies else "both fleets")
    if rollout.rollback_step_percent or rollout.rollback_step_count:
        batch = rollout.rollback_step_count or f"{rollout.rollback_step_percent} %"
        undone += f"; then goes back in batches of {batch}"
    if config.endpoint.copies is not None:
        return _batches(rollout), _time(rollout, fewest, "copies", ""), undone
    waits = f"; CloudFormation waits {_CLOUDFORMATION_MINUTES} minutes"
    return _steps(rollout), _time(rollout, fewest, "instances", waits), undone


def _batches(rollout: Rollout) -> str:
    watched = f"each watched for {rollout.wait_seconds} s"
    if rollout.step_count is not None:
        return f"{rollout.strategy}: batches of {rollout.step_count}, {watched}"
    shares = ", ".join(f"{share} %" for share in rollout.shares_percent(100))
    return f"{rollout.strategy}: {shares} of the copies, {watched}; a batch has one copy at least"


def _steps(rollout: Rollout) -> str:
    watched = f"watched for {rollout.wait_seconds} s"
    if rollout.strategy == ALL_AT_ONCE:
        text = f"all at once, {watched}"
    elif rollout.step_count is not None:
        rest = "then the rest" if rollout.strategy == CANARY else "then as many more"
        text = f"{rollout.strategy}: {rollout.step_count} of the instances, {rest}, each {watched}"
    else:
        shares = ", ".join(f"{share} %" for share in rollout.shares_percent(100))
        text = f"{rollout.strategy}: {shares} of the requests, each {watched}"
    if rollout.strategy == ROLLING:
        return f"{text}; each batch of the old fleet ends after its step"
    kept = rollout.termination_wait_seconds
    return f"{text}; old fleet kept {kept} s" if kept else text


def _time(rollout: Rollout, count: int, starting: str, without_limit: str) -> str:
    seconds = rollout.least_seconds(count)
    least = f"takes at least {seconds} s and the start of the new {starting}"
    if rollout.max_execution_seconds is None:
        return f"{least}{without_limit}"
    return f"{least}; undone after {rollout.max_execution_seconds} s"


def _undone(config: ModelConfig, watched: str) -> str:
    names, fleet = config.rollout.rollback_alarms, new_fleet_alarms(config)
    if not names:
        return "undone by no alarm"
    parts = []
    if fleet:
        parts.append(f"{', '.join(fleet)} of the new fleet")
    parts += [f"{name} of {watched}" for name in names if name not in fleet]
    return f"undone by {', '.join(parts)}"
