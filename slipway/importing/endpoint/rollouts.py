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
# Of `rollout.step_percent`. A single instance or copy is more, and is the smallest step.
_LEAST_PERCENT, _MOST_PERCENT = 5, 50


def rollout_section(
    described: Described, instance_count: int, found: Findings
) -> dict[str, Any] | None:
    """Returns the section; None for SageMaker's default, which moves all traffic at once."""
    fleet, updated = f"{instance_count} instances", described.endpoint
    if described.component is not None:
        # Its copies are replaced, and not the instances.
        updated = described.component
        instance_count = updated.get("RuntimeConfig", {}).get("DesiredCopyCount", 0)
        fleet = f"{instance_count} copies"
    raw = updated.get("LastDeploymentConfig")
    if not raw:
        return None
    config, section = Answer(raw), dict[str, Any]()
    rolling = "RollingUpdatePolicy" in raw
    policy = "RollingUpdatePolicy" if rolling else "BlueGreenUpdatePolicy"
    routing = () if rolling else ("TrafficRoutingConfiguration",)
    kind = config.take(policy, *routing, "Type")
    section["strategy"] = "rolling" if rolling else _STRATEGIES.get(str(kind), "all_at_once")
    for name in ("MaximumBatchSize", "CanarySize", "LinearStepSize"):
        step = config.take(policy, *routing, name)
        if step:
            section["step_percent"] = _percent(step, instance_count, fleet, found)
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
    """Returns the alarms that undo an update, by their names in a config."""
    known, names = alarm_names(described), dict[str, None]()
    for each in config.take(_ROLLBACK, "Alarms") or ():
        name = each["AlarmName"]
        if name in known:
            names[known[name]] = None
        else:
            reason = "no alarm of Slipway compares the same."
            found.leave_out("rollback alarm", name, reason)
    return list(names)


def _percent(step: Mapping[str, Any], count: int, fleet: str, found: Findings) -> int:
    """Returns the size of a step in percent of the fleet."""
    if step["Type"] == "CAPACITY_PERCENT":
        return int(step["Value"])
    found.guess(
        ("rollout", "step_percent"),
        f"{step['Value']} of {fleet}. Slipway sets percentages, as scaling changes the number.",
    )
    percent: int = round(100 * step["Value"] / max(1, count))
    return min(max(_LEAST_PERCENT, percent), _MOST_PERCENT)
