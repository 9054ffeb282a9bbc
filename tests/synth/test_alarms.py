"""The alarms of a model's template, with every kind of alarm and with several variants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from slipway.facts.instances import instance_types
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resolve import resolve
from stacks.endpoint_stack import EndpointStack
from tests.support.projects import IMAGE_DIGESTS, LOCAL, lock_for, model_config
from tests.synth.assemblies import new_app

_ALARMS = {
    "model_latency_p99_milliseconds": 600,
    "overhead_latency_p99_milliseconds": 200,
    "client_error_rate_percent": 10,
    "memory_utilization_percent": 80,
    "disk_utilization_percent": 80,
    "gpu_memory_utilization_percent": 90,
}

_ROLLOUT = {
    "rollback_alarms": ["server_error_rate", "model_latency_p99"],
    "termination_wait_seconds": 120,
    "max_execution_seconds": 1800,
}


def _plan(name: str, **sections: Any) -> DeploymentPlan:
    config = model_config(name, **sections)
    return resolve(config, instance_types(), LOCAL, lock_for(config), IMAGE_DIGESTS)


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Each model's resources."""
    app = new_app(tmp_path_factory.mktemp("alarms"))
    variants = [
        {"name": "large", "weight": 1, "instances": ["ml.g4dn.12xlarge"]},
        {"name": "small", "weight": 1, "instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"]},
    ]
    plans = [
        _plan("watched", alarms=_ALARMS),
        _plan("unlike", alarms=_ALARMS, endpoint={"variants": variants}),
        _plan("guarded", endpoint={"variants": variants}, rollout=_ROLLOUT),
    ]
    for plan in plans:
        env = cdk.Environment(account=plan.account, region=plan.region)
        EndpointStack(app, plan.name, plan=plan, env=env)
    directory = Path(app.synth().directory)
    return {
        plan.name: json.loads((directory / f"{plan.name}.template.json").read_text("utf-8"))[
            "Resources"
        ]
        for plan in plans
    }


@pytest.fixture(scope="module")
def alarms(templates: dict[str, dict[str, Any]]) -> dict[str, dict[tuple[str, str], Any]]:
    """Each model's alarms: properties by variant and metric (its first query's for metric math)."""
    return {
        name: {
            _watched(resource["Properties"]): resource["Properties"]
            for resource in resources.values()
            if resource["Type"] == "AWS::CloudWatch::Alarm"
        }
        for name, resources in templates.items()
    }


def _watched(alarm: dict[str, Any]) -> tuple[str, str]:
    if "Metrics" in alarm:
        (first, *_) = alarm["Metrics"]
        dimensions, metric = first["MetricStat"]["Metric"]["Dimensions"], first["Id"]
    else:
        dimensions, metric = alarm["Dimensions"], alarm["MetricName"]
    values = {item["Name"]: item["Value"] for item in dimensions}
    return values["VariantName"], metric


def test_machines_without_values_are_not_called_healthy(
    alarms: dict[str, dict[tuple[str, str], Any]],
):
    treatments = {metric: a["TreatMissingData"] for (_, metric), a in alarms["watched"].items()}
    assert treatments == {
        # Without a request these have no data points, and nothing failed.
        "server_errors": "notBreaching",
        "client_errors": "notBreaching",
        "ModelLatency": "notBreaching",
        "OverheadLatency": "notBreaching",
        # A machine always has values. Without them nothing is known.
        "MemoryUtilization": "missing",
        "DiskUtilization": "missing",
        "GPUMemoryUtilization": "missing",
    }


def test_the_gpus_of_each_variant_make_its_own_threshold(
    alarms: dict[str, dict[tuple[str, str], Any]],
):
    found = {
        variant: (alarm["Threshold"], alarm["AlarmDescription"])
        for (variant, metric), alarm in alarms["unlike"].items()
        if metric == "GPUMemoryUtilization"
    }
    use = "use of the GPUs' memory, in percent"
    assert found == {
        "large": (360, f"unlike-local, large: {use}, added up over 4 GPUs"),
        "small": (90, f"unlike-local, small: {use}"),
    }


def test_updates_are_guarded_by_the_alarms_of_every_variant(
    templates: dict[str, dict[str, Any]],
):
    resources = templates["guarded"]
    (endpoint,) = (r for r in resources.values() if r["Type"] == "AWS::SageMaker::Endpoint")
    config = endpoint["Properties"]["DeploymentConfig"]
    assert config["BlueGreenUpdatePolicy"] == {
        "MaximumExecutionTimeoutInSeconds": 1800,
        "TerminationWaitInSeconds": 120,
        "TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 300},
    }
    named = [item["AlarmName"]["Ref"] for item in config["AutoRollbackConfiguration"]["Alarms"]]
    assert [_watched(resources[name]["Properties"]) for name in named] == [
        ("large", "server_errors"),
        ("large", "ModelLatency"),
        ("small", "server_errors"),
        ("small", "ModelLatency"),
    ]


def test_an_update_without_guards_is_sagemakers_own(templates: dict[str, dict[str, Any]]):
    (endpoint,) = (
        r for r in templates["watched"].values() if r["Type"] == "AWS::SageMaker::Endpoint"
    )
    assert "DeploymentConfig" not in endpoint["Properties"]
