"""A rollout in words, for `slipway plan` and for the note that the CDK CLI prints."""

from slipway.config.schema import ModelConfig
from slipway.config.sections.rollout import Rollout
from slipway.planning.rollout import ALL_AT_ONCE, CANARY, ROLLING, fleet_bounds, new_fleet_alarms

# CloudFormation's limit on an endpoint's update: `handlers.update.timeoutInMinutes` in AWS's schema
# of AWS::SageMaker::Endpoint.
_CLOUDFORMATION_MINUTES = 970


def describe_rollout(config: ModelConfig) -> tuple[str, str, str]:
    """Returns the steps, the time, and the alarms that undo the update, one line each.

    Args:
        config: has a rollout of its own. The copies of an inference component are replaced in
            batches.
    """
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
