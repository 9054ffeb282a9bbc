"""The last deployment's configuration, as the section `rollout` has it."""

from collections.abc import Mapping
from typing import Any

from slipway.deployed.answers import Answer
from slipway.deployed.described import Described
from slipway.importing.endpoint.alarms import alarm_names
from slipway.importing.endpoint.findings import Findings

_STRATEGIES: Mapping[str, str] = {
    "ALL_AT_ONCE": "all_at_once",
    "CANARY": "canary",
    "LINEAR": "linear",
}
_ROLLBACK = "AutoRollbackConfiguration"
_SIZES: Mapping[str, str] = {
    "MaximumBatchSize": "step",
    "CanarySize": "step",
    "LinearStepSize": "step",
    "RollbackMaximumBatchSize": "rollback_step",
}


def rollout_section(described: Described, found: Findings) -> dict[str, Any] | None:
    """Returns the section; None for SageMaker's default, which moves all traffic at once."""
    # The copies of a component are replaced, and not the instances.
    raw = (described.component or described.endpoint).get("LastDeploymentConfig")
    if not raw:
        return None
    config, section = Answer(raw), dict[str, Any]()
    rolling = "RollingUpdatePolicy" in raw
    policy = "RollingUpdatePolicy" if rolling else "BlueGreenUpdatePolicy"
    routing = () if rolling else ("TrafficRoutingConfiguration",)
    kind = config.take(policy, *routing, "Type")
    section["strategy"] = "rolling" if rolling else _STRATEGIES.get(str(kind), "all_at_once")
    for name, field in _SIZES.items():
        if step := config.take(policy, *routing, name):
            unit = "percent" if step["Type"] == "CAPACITY_PERCENT" else "count"
            section[f"{field}_{unit}"] = int(step["Value"])
    section |= config.fields(
        {
            "wait_seconds": (policy, *routing, "WaitIntervalInSeconds"),
            "termination_wait_seconds": (policy, "TerminationWaitInSeconds"),
            "max_execution_seconds": (policy, "MaximumExecutionTimeoutInSeconds"),
        }
    )
    section["rollback_alarms"] = _alarms(described, config, found)
    found.leave_out_rest(config, "LastDeploymentConfig.")
    waits = section.get("wait_seconds", 0) + section.get("termination_wait_seconds", 0)
    is_default = section["strategy"] == "all_at_once" and not waits
    if is_default and not section["rollback_alarms"] and "max_execution_seconds" not in section:
        return None
    return section


def _alarms(described: Described, config: Answer, found: Findings) -> list[str]:
    known, names = alarm_names(described), dict[str, None]()
    for each in config.take(_ROLLBACK, "Alarms") or ():
        name = each["AlarmName"]
        if name in known:
            names[known[name]] = None
        else:
            reason = "no alarm of Slipway compares the same."
            found.leave_out("rollback alarm", name, reason)
    return list(names)
