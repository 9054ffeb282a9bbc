"""Alarms of variants and of queues, what recognises them in an account, and the dashboard."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.config.alarms_of_modes import watch_of
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.facts.prices import dashboard_price
from slipway.planning.described_alarms import is_capacity_alarm, kind_of, variant_of
from slipway.planning.plan import DeploymentPlan
from tests.support.plans import plan_for
from tests.support.projects import model_config
from tests.synth.assemblies import of_plans

_REALTIME = [kind.field for kind in ALARM_KINDS.values() if watch_of(kind, "realtime")]
_OF_QUEUES = [kind.field for kind in ALARM_KINDS.values() if watch_of(kind, "async")]
# https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-monitor.html, read 2026-11-24: the
# list is "exhaustive". Metrics of machines have a namespace of their own.
_METRICS_OF_ENDPOINT = {
    "ApproximateBacklogSize",
    "ApproximateBacklogSizePerInstance",
    "ApproximateAgeOfOldestRequest",
    "HasBacklogWithoutCapacity",
}
_METRICS_OF_VARIANT = {
    "Invocation4XXErrors",
    "Invocation5XXErrors",
    "ModelLatency",
    "RequestDownloadFailures",
    "ResponseUploadFailures",
    "NotificationFailures",
    "RequestDownloadLatency",
    "ResponseUploadLatency",
    "ExpiredRequests",
    "InvocationFailures",
    "TimeInBacklog",
    "TotalProcessingTime",
}
_TEMPLATES = Path(__file__).parents[1] / "golden" / "templates"

_FEWEST_ALARMS = {"model_latency_p99_milliseconds": 600}
_SCALING = {
    "min_instance_count": 1,
    "max_instance_count": 4,
    "target_invocations_per_instance_per_minute": 600,
}

_ROLLOUT = {
    "rollback_alarms": ["server_error_rate", "model_latency_p99"],
    "termination_wait_seconds": 120,
    "max_execution_seconds": 1800,
}


def _plan(name: str, **sections: Any) -> DeploymentPlan:
    config = model_config(name, **sections)
    return plan_for(config)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    variants = [
        {"name": "large", "weight": 1, "instances": ["ml.g4dn.12xlarge"]},
        {"name": "small", "weight": 1, "instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"]},
    ]
    plans = [
        _plan("unlike", alarms=dict.fromkeys(_REALTIME, 90), endpoint={"variants": variants}),
        _plan("guarded", endpoint={"variants": variants}, rollout=_ROLLOUT),
        _plan(
            "full",
            endpoint={"variants": variants},
            alarms=_FEWEST_ALARMS | {"at_max_capacity": True, "evaluation_periods_minutes": 5},
            autoscaling=_SCALING,
        ),
        _plan(
            "asleep",
            endpoint={
                "instance_count": 1,
                "mode": "scale_to_zero",
                "scale_to_zero": {"max_copies": 3, "target_concurrent_requests_per_copy": 5},
            },
            alarms=_FEWEST_ALARMS | {"at_max_capacity": True},
        ),
        _plan(
            "queued",
            endpoint={
                "mode": "async",
                "async_inference": {"input": "s3://requests/", "output": "s3://answers/"},
            },
            alarms=dict.fromkeys(_OF_QUEUES, 90),
            rollout={"rollback_alarms": ["server_error_rate", "model_latency_p99"]},
        ),
    ]
    named = {plan.config.name: plan for plan in plans}
    assembly = of_plans(tmp_path_factory.mktemp("alarms"), named)
    return {name: assembly.template_file(name) for name in named}


@pytest.fixture(scope="module")
def templates(paths: dict[str, Path]) -> dict[str, dict[str, Any]]:
    return {name: json.loads(path.read_text("utf-8"))["Resources"] for name, path in paths.items()}


@pytest.fixture(scope="module")
def alarms(templates: dict[str, dict[str, Any]]) -> dict[tuple[str, str], Any]:
    """The alarms of every threshold: properties by variant and construct id."""
    names = re.compile("Alarms(large|small)([A-Za-z]+)[0-9A-F]{8}")
    found = {}
    for logical_id, resource in templates["unlike"].items():
        if resource["Type"] == "AWS::CloudWatch::Alarm":
            match = names.fullmatch(logical_id)
            assert match is not None
            found[match[1], match[2]] = resource["Properties"]
    return found


def test_a_golden_template_has_every_alarm():
    resources = json.loads((_TEMPLATES / "every-alarm.json").read_text("utf-8"))[
        "Resources"
    ].values()
    found = [kind_of(r["Properties"]) for r in resources if r["Type"] == "AWS::CloudWatch::Alarm"]
    assert [kind.field for kind in found if kind] == _REALTIME


def test_alarms_in_the_account_are_recognised(alarms: dict[tuple[str, str], Any]):
    # DescribeAlarms answers with these properties.
    told = [(variant_of(alarm), kind_of(alarm)) for alarm in alarms.values()]
    kinds = [ALARM_KINDS[name] for name in ALARM_KINDS if ALARM_KINDS[name].field in _REALTIME]
    assert told == [(variant, kind) for variant in ("large", "small") for kind in kinds]
    for alarm in alarms.values():
        assert kind_of({**alarm, "MetricName": "CPUUtilization", "Statistic": "Average"}) is None


def test_every_name_in_a_formula_is_a_query_before_it(alarms: dict[tuple[str, str], Any]):
    for alarm in alarms.values():
        # The value that is compared is the last one.
        *queries, compared = alarm.get("Metrics", [{"ReturnData": True}])
        assert compared["ReturnData"]
        known = set[str]()
        for query in (*queries, compared):
            assert set(re.findall("[a-z_]+", query.get("Expression", ""))) <= known
            known.add(query.get("Id", ""))
        assert not any(query["ReturnData"] for query in queries)


def test_the_alarm_at_the_maximum_is_each_variants_own_and_no_other_kind(
    templates: dict[str, dict[str, Any]],
):
    """Golden templates have its properties."""
    found = {
        variant_of(alarm): alarm
        for alarm in _alarms(templates["full"])
        if alarm["AlarmDescription"].endswith("of at most 4")
    }
    assert set(found) == {"large", "small"}
    alarm = found["small"]
    assert is_capacity_alarm(alarm)
    assert kind_of(alarm) is None
    assert alarm["AlarmDescription"] == "full-local, small: number of instances, of at most 4"
    assert alarm["Threshold"] == 3.5
    (of_copies,) = filter(is_capacity_alarm, _alarms(templates["asleep"]))
    assert of_copies["AlarmDescription"] == "asleep-local: number of copies, of at most 3"
    assert of_copies["Threshold"] == 2.5
    assert not any(is_capacity_alarm(each) for each in _alarms(templates["unlike"]))


def _alarms(resources: dict[str, Any]) -> list[dict[str, Any]]:
    found = resources.values()
    return [each["Properties"] for each in found if each["Type"] == "AWS::CloudWatch::Alarm"]


def _stats(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    queries = [query["MetricStat"] for query in alarm.get("Metrics", ()) if "MetricStat" in query]
    stat = alarm.get("Statistic") or alarm.get("ExtendedStatistic")
    return queries or [{"Metric": alarm, "Stat": stat, "Period": alarm["Period"]}]


def test_the_gpus_of_each_variant_make_its_own_threshold(alarms: dict[tuple[str, str], Any]):
    found = {
        variant: (alarm["Threshold"], alarm["AlarmDescription"])
        for (variant, construct_id), alarm in alarms.items()
        if construct_id == "GPUMemory"
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
    kinds = [
        (variant_of(alarm), kind_of(alarm))
        for alarm in (resources[name]["Properties"] for name in named)
    ]
    assert kinds == [
        (variant, ALARM_KINDS[name])
        for variant in ("large", "small")
        for name in ("server_error_rate", "model_latency_p99")
    ]
    # They watch the fleet of the stack's own configuration: in an update the new one.
    (config_id,) = (
        name for name, r in resources.items() if r["Type"] == "AWS::SageMaker::EndpointConfig"
    )
    own = {"Fn::GetAtt": [config_id, "EndpointConfigName"]}
    for alarm in (resources[name]["Properties"] for name in named):
        for stat in _stats(alarm):
            found = {each["Name"]: each["Value"] for each in stat["Metric"]["Dimensions"]}
            assert (found["EndpointName"], found["EndpointConfigName"]) == ("guarded-local", own)
    assert resources[named[0]]["Properties"]["AlarmDescription"].startswith(
        "guarded-local, large, the newest fleet alone: share of invocations that failed"
    )


def test_the_cdk_cli_tells_the_rollout(paths: dict[str, Path]):
    folder = paths["guarded"].parent
    told = {
        name: [
            entry["data"]
            for entries in json.loads((folder / f"{name}.metadata.json").read_text()).values()
            for entry in entries
            if entry["type"] == "aws:cdk:info"
        ]
        for name in paths
    }
    assert told == {
        "unlike": [],
        "full": [],
        "asleep": [],
        "queued": [
            "Rollout of the next change: all at once, watched for 300 s; takes at least 300 s and "
            "the start of the new instances; CloudFormation waits 970 minutes; undone by "
            "server_error_rate of both fleets, model_latency_p99 of both fleets."
        ],
        "guarded": [
            "Rollout of the next change: all at once, watched for 300 s; old fleet kept 120 s; "
            "takes at least 420 s and the start of the new instances; undone after 1800 s; undone "
            "by server_error_rate, model_latency_p99 of the new fleet."
        ],
    }


def test_every_alarm_of_a_queue_reads_metrics_that_it_has_and_is_recognised(
    templates: dict[str, dict[str, Any]],
):
    watched = _alarms(templates["queued"])
    of_endpoint = [{"Name": "EndpointName", "Value": "queued-local"}]
    of_variant = [*of_endpoint, {"Name": "VariantName", "Value": "AllTraffic"}]
    read = set[str]()
    for alarm in watched:
        for metric in (stat["Metric"] for stat in _stats(alarm)):
            if metric["Namespace"] == "/aws/sagemaker/Endpoints":
                assert metric["Dimensions"] == of_variant
                continue
            known = (
                _METRICS_OF_ENDPOINT if metric["Dimensions"] == of_endpoint else _METRICS_OF_VARIANT
            )
            assert metric["Dimensions"] in (of_endpoint, of_variant)
            assert metric["MetricName"] in known
            read.add(metric["MetricName"])
    assert read == {
        "ApproximateAgeOfOldestRequest",
        "Invocation4XXErrors",
        "InvocationFailures",
        "ModelLatency",
        "TimeInBacklog",
    }
    # AWS publishes none of them for one fleet alone, so a rollout has no alarms of its own.
    kinds = list(map(kind_of, watched))
    assert [kind and kind.field for kind in kinds] == _OF_QUEUES


# The dashboard of each golden template: what it shows is what the stack has

ENDPOINTS = [
    path.stem
    for path in sorted(_TEMPLATES.glob("*.json"))
    if '"AWS::SageMaker::Endpoint"' in path.read_text("utf-8")
]
WIDEST = 24


def golden_resources(name: str, kind: str) -> dict[str, Any]:
    content = json.loads((_TEMPLATES / f"{name}.json").read_text("utf-8"))["Resources"]
    return {key: each["Properties"] for key, each in content.items() if each["Type"] == kind}


def own_alarms(name: str) -> list[str]:
    """Returns the alarms without those of a new fleet, and those that scale and watch no fault."""
    alarms = golden_resources(name, "AWS::CloudWatch::Alarm")
    return [key for key in alarms if key.startswith("Alarms")]


def properties(name: str) -> Iterator[Any]:
    """The properties of each widget; an alarm's ARN is its logical id."""
    (board,) = golden_resources(name, "AWS::CloudWatch::Dashboard").values()
    body = board["DashboardBody"]
    parts = body["Fn::Join"][1]
    text = "".join(each if isinstance(each, str) else each["Fn::GetAtt"][0] for each in parts)
    for widget in json.loads(text)["widgets"]:
        assert widget["type"] == "metric"
        assert WIDEST % widget["width"] == 0
        yield widget["properties"]


def metrics(name: str) -> list[tuple[str, str, tuple[tuple[str, str], ...]]]:
    found = []
    for shown in properties(name):
        ids = set()
        for *parts, options in shown.get("metrics", ()):
            if not parts:
                # An expression of the metrics before it.
                assert set(options["expression"].split(" / ")) <= ids
                continue
            ids.add(options.get("id"))
            namespace, metric, *pairs = parts
            dimensions = tuple(zip(pairs[::2], pairs[1::2], strict=True))
            found.append((namespace, metric, dimensions))
    return found


@pytest.mark.parametrize("name", ENDPOINTS)
def test_every_alarm_of_the_model_is_shown_once(name: str):
    shown = [
        arn
        for each in properties(name)
        for arn in each.get("annotations", {"alarms": []})["alarms"]
    ]
    alarms = [
        key for key in golden_resources(name, "AWS::CloudWatch::Alarm") if key.startswith("Alarms")
    ]
    assert sorted(shown) == sorted(alarms)
    titles = [each["title"] for each in properties(name)]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("name", ENDPOINTS)
def test_what_is_shown_belongs_to_the_endpoint(name: str):
    found = metrics(name)
    variants = [
        each["VariantName"]
        for config in golden_resources(name, "AWS::SageMaker::EndpointConfig").values()
        for each in config["ProductionVariants"]
    ]
    components = {
        each["InferenceComponentName"]
        for each in golden_resources(name, "AWS::SageMaker::InferenceComponent").values()
    }
    shown = {value for _, _, pairs in found for key, value in pairs if key == "VariantName"}
    assert shown == set(variants)
    copies = {value for _, _, pairs in found for key, value in pairs if key.startswith("Inference")}
    assert copies == components | ({"guest-local"} if name == "host" else set())
    price = dashboard_price("us-east-1")
    assert price is not None
    if len(variants) == 1:
        # Alarms read up to four metrics each, beside those that are listed.
        alarms = [
            key
            for key in golden_resources(name, "AWS::CloudWatch::Alarm")
            if key.startswith("Alarms")
        ]
        assert len(found) + 4 * len(alarms) <= price.free_metrics


def test_a_queue_and_a_guest_have_their_own():
    names = {metric for _, metric, _ in metrics("async")}
    assert {"TimeInBacklog", "InvocationFailures", "ApproximateBacklogSize"} <= names
    assert not {"Invocations", "OverheadLatency"} & names
    assert "GPUUtilization" in names
    assert not golden_resources("guest", "AWS::CloudWatch::Dashboard")
