"""The strategies of rollouts, and the alarms that watch the new fleet alone."""

from slipway.config.alarm_kinds import REQUESTS
from slipway.config.schema import ModelConfig
from slipway.config.sections.alarms import ALARM_KINDS

ALL_AT_ONCE, CANARY, LINEAR, ROLLING = "all_at_once", "canary", "linear", "rolling"


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
