"""The strategies of rollouts, and the alarms that watch the new fleet alone."""

from slipway.config.alarm_kinds import REQUESTS
from slipway.config.schema import ModelConfig
from slipway.config.sections.alarms import ALARM_KINDS

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
