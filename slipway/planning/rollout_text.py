"""A rollout in words, for `slipway plan` and for the note that the CDK CLI prints."""

from slipway.planning.rollout import ALL_AT_ONCE, ROLLING, RolloutPlan

# CloudFormation's limit on an endpoint's update: `handlers.update.timeoutInMinutes` in AWS's schema
# of AWS::SageMaker::Endpoint.
_CLOUDFORMATION_MINUTES = 970


def describe_rollout(rollout: RolloutPlan, *, is_component: bool = False) -> tuple[str, str, str]:
    """Returns the steps, the time, and the alarms that undo the update, one line each.

    Args:
        rollout: of the plan.
        is_component: whether it replaces the copies of an inference component.
    """
    if is_component:
        return _batches(rollout), _time(rollout, "copies", ""), _undone(rollout, "all copies")
    waits = f"; CloudFormation waits {_CLOUDFORMATION_MINUTES} minutes"
    return _steps(rollout), _time(rollout, "instances", waits), _undone(rollout, "both fleets")


def _batches(rollout: RolloutPlan) -> str:
    shares = ", ".join(f"{share} %" for share in rollout.shares_percent)
    return (
        f"{rollout.strategy}: {shares} of the copies, each watched for {rollout.wait_seconds} s; "
        "a batch has one copy at least"
    )


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


def _time(rollout: RolloutPlan, starting: str, without_limit: str) -> str:
    least = f"takes at least {rollout.least_seconds} s and the start of the new {starting}"
    if rollout.max_execution_seconds is None:
        return f"{least}{without_limit}"
    return f"{least}; undone after {rollout.max_execution_seconds} s"


def _undone(rollout: RolloutPlan, watched: str) -> str:
    names = rollout.rollback_alarms
    if not names:
        return "undone by no alarm"
    fleet = rollout.new_fleet_alarms
    parts = []
    if fleet:
        parts.append(f"{', '.join(fleet)} of the new fleet")
    parts += [f"{name} of {watched}" for name in names if name not in fleet]
    return f"undone by {', '.join(parts)}"
