"""A rollout in words, for `slipway plan` and for the note that the CDK CLI prints."""

from slipway.planning.rollout import ALL_AT_ONCE, ROLLING, RolloutPlan

# CloudFormation's limit on an endpoint's update: `handlers.update.timeoutInMinutes` in AWS's schema
# of AWS::SageMaker::Endpoint.
_CLOUDFORMATION_MINUTES = 970


def describe_rollout(rollout: RolloutPlan) -> tuple[str, str, str]:
    """Returns the steps, the time, and the alarms that undo the update, one line each."""
    return _steps(rollout), _time(rollout), _undone(rollout)


def _steps(rollout: RolloutPlan) -> str:
    watched = f"watched for {rollout.wait_seconds} s"
    if rollout.strategy == ALL_AT_ONCE:
        text = f"all at once, {watched}"
    else:
        shares = ", ".join(f"{share} %" for share in rollout.shares_percent)
        text = f"{rollout.strategy}: {shares} of the requests, each {watched}"
    if rollout.strategy == ROLLING:
        return f"{text}; each batch of the old fleet ends after its step"
    kept = rollout.termination_wait_seconds
    return f"{text}; old fleet kept {kept} s" if kept else text


def _time(rollout: RolloutPlan) -> str:
    least = f"takes at least {rollout.least_seconds} s and the start of the new instances"
    if rollout.max_execution_seconds is None:
        return f"{least}; CloudFormation waits {_CLOUDFORMATION_MINUTES} minutes"
    return f"{least}; undone after {rollout.max_execution_seconds} s"


def _undone(rollout: RolloutPlan) -> str:
    names = rollout.rollback_alarms
    if not names:
        return "undone by no alarm"
    fleet = rollout.new_fleet_alarms
    parts = []
    if fleet:
        parts.append(f"{', '.join(fleet)} of the new fleet")
    parts += [f"{name} of both fleets" for name in names if name not in fleet]
    return f"undone by {', '.join(parts)}"
