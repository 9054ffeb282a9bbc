"""Metrics, debugging, reservations, roles, volume keys: refusals, and configs that pass."""

from typing import Any

import pytest

from slipway.cli.plan_text import describe_plan
from slipway.planning.partial import rules_of
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resources import resources_of
from slipway.planning.rules import exclusions, surroundings
from slipway.planning.rules.surroundings import role_is_of_the_account
from tests.support.plans import plan_for
from tests.support.projects import LOCAL, PRODUCTION, model_config
from tests.unit.planning.rule_findings import all_of, findings, only, refused_fields

QUEUE = {"input": "s3://requests/", "output": "s3://answers/"}
FREQUENCY = "endpoint.metrics.publish_frequency_seconds"


def published(seconds: int = 60, *, enhanced: bool = False, **sections: Any) -> dict[str, Any]:
    section = {"enhanced": enhanced, "publish_frequency_seconds": seconds}
    return {"endpoint": {"metrics": section}, **sections}


@pytest.mark.parametrize("enhanced", [False, True])
@pytest.mark.parametrize("seconds", [10, 30, 60])
def test_a_value_a_minute_is_enough(seconds: int, enhanced: bool) -> None:
    alarms = {"memory_utilization_percent": 80}
    for rule in (
        surroundings.requests_are_counted_each_minute,
        surroundings.machines_are_measured_each_minute,
    ):
        assert findings(rule, **published(seconds, enhanced=enhanced, alarms=alarms)) == []


def test_requests_that_are_counted_every_two_minutes_raise_no_alarm() -> None:
    rule = surroundings.requests_are_counted_each_minute
    assert only(findings(rule, **published(120, enhanced=True))) == (
        FREQUENCY,
        "with `enhanced`, the metrics of requests come every 120 seconds, and alarms read them "
        "every minute",
        "Set `publish_frequency_seconds` to 10, 30 or 60, or `enhanced` to false.",
    )
    assert findings(rule, **published(120)) == []


def test_rare_metrics_of_machines_need_that_nobody_reads_them() -> None:
    rule = surroundings.machines_are_measured_each_minute
    assert findings(rule, **published(300)) == []
    scaling = {
        "min_instance_count": 1,
        "max_instance_count": 4,
        "target_gpu_utilization_percent": 60,
    }
    alarms = {"memory_utilization_percent": 80, "client_error_rate_percent": 5}
    assert findings(rule, **published(300, alarms=alarms, autoscaling=scaling)) == [
        (
            FREQUENCY,
            f"the metrics of machines come every 300 seconds, and `{reader}` reads them every "
            "minute",
            f"Set `publish_frequency_seconds` to 10, 30 or 60, or remove `{reader}`.",
        )
        for reader in (
            "alarms.memory_utilization_percent", "autoscaling.target_gpu_utilization_percent",
        )
    ]  # fmt: skip


def test_a_queue_excludes_the_section() -> None:
    rule = all_of(exclusions.RULES)
    queue = {"mode": "async", "async_inference": QUEUE}
    assert findings(rule, endpoint=queue) == []
    assert only(findings(rule, endpoint={**queue, "metrics": {}})) == (
        "endpoint.metrics",
        "`metrics` and `mode: async` exclude each other: AWS documents these settings for "
        "real-time endpoints only",
        "Remove `metrics`.",
    )


KEY = "arn:aws:kms:us-east-1:123456789012:key/0a"
DUMPS = {"destination": "s3://dumps/tiny/", "key_arn": KEY}


def opened(**more: Any) -> dict[str, Any]:
    return {"ssm_access": True, **more}


def test_a_session_needs_a_container_with_a_network() -> None:
    rule = surroundings.sessions_reach_the_container
    assert findings(rule, PRODUCTION, endpoint=opened(network_isolation=False)) == []
    assert only(findings(rule, PRODUCTION, endpoint=opened())) == (
        "endpoint.ssm_access",
        "SageMaker starts no session in a container with network isolation",
        "Add `network_isolation: false`, or remove `ssm_access`.",
    )


def test_copies_have_no_sessions() -> None:
    copies = {
        "mode": "scale_to_zero",
        "scale_to_zero": {"max_copies": 2, "target_concurrent_requests_per_copy": 1},
        "instance_count": 1,
        "network_isolation": False,
    }
    rule = all_of(exclusions.RULES)
    assert only(findings(rule, PRODUCTION, endpoint=opened(**copies))) == (
        "endpoint.ssm_access",
        "`ssm_access` and `mode: scale_to_zero` exclude each other: SageMaker ignores it for "
        "inference components",
        "Remove `ssm_access`, or set `mode: realtime`.",
    )


def test_the_embedded_aws_refuses_what_it_has_not() -> None:
    rule, endpoint = surroundings.embedded_aws_has_it, opened(core_dump=DUMPS)
    assert findings(rule, PRODUCTION, endpoint=endpoint) == []
    assert findings(rule, LOCAL, endpoint=endpoint) == [
        (
            "endpoint.ssm_access",
            "`ssm_access` has no effect in `local`: the embedded AWS has no Systems Manager",
            "Move `ssm_access` to an environment with an account, under `environments`.",
        ),
        (
            "endpoint.core_dump",
            "`core_dump` has no effect in `local`: the embedded AWS writes no core dumps",
            "Move `core_dump` to an environment with an account, under `environments`.",
        ),
    ]


def test_the_key_of_dumps_is_of_the_region() -> None:
    rule, endpoint = surroundings.dump_key_is_near, {"core_dump": DUMPS}
    assert refused_fields(rule, PRODUCTION, endpoint=endpoint) == ["endpoint.core_dump.key_arn"]
    assert refused_fields(rule, LOCAL, endpoint=endpoint) == []


ARN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/search"


def reserved(arn: str | None = ARN, **endpoint: Any) -> dict[str, Any]:
    return {"endpoint": {"capacity_reservation_arn": arn, **endpoint}}


def test_one_type_in_the_region_is_fine():
    for rule in rules_of(surroundings):
        assert findings(rule, **reserved()) == []
        assert findings(rule, **reserved(None, instances=["ml.g4dn.xlarge", "ml.g5.xlarge"])) == []


def test_a_pool_has_several_types():
    pool = reserved(instances=["ml.g4dn.xlarge", "ml.g4dn.2xlarge"])
    assert refused_fields(surroundings.reservation_has_one_type, **pool) == ["endpoint.instances"]


def test_a_reservation_serves_one_variant():
    both = reserved(
        variants=[{"name": "a", "weight": 1}, {"name": "b", "weight": 1}],
        shadow={"sampling_percent": 50},
    )
    assert findings(surroundings.reservation_has_one_variant, **both) == [
        (
            f"endpoint.{name}",
            f"a reservation serves one variant, and `{name}` adds others",
            f"Remove `{name}`, or the reservation.",
        )
        for name in ("variants", "shadow")
    ]


def test_a_reservation_is_in_one_region():
    elsewhere = reserved(ARN.replace("us-east-1", "eu-west-1"))
    assert refused_fields(surroundings.reservation_is_of_the_region, **elsewhere) == [
        "endpoint.capacity_reservation_arn"
    ]


def test_role_is_of_the_account():
    assert findings(role_is_of_the_account) == []
    own = {"execution_role_arn": "arn:aws:iam::123456789012:role/ml/serving"}
    assert findings(role_is_of_the_account, endpoint=own) == []
    foreign = {"execution_role_arn": "arn:aws:iam::210987654321:role/ml/serving"}
    assert only(findings(role_is_of_the_account, endpoint=foreign)) == (
        "endpoint.execution_role_arn",
        "the role belongs to account 210987654321, and `local` is in 123456789012",
        "Name a role of 123456789012 under `environments: local:`.",
    )


def planned(**endpoint: object) -> DeploymentPlan:
    config = model_config(endpoint=endpoint)
    return plan_for(config)


def test_a_volume_takes_a_key_of_its_region() -> None:
    rule, endpoint = surroundings.volume_key_is_near, {"volume_key_arn": KEY}
    assert findings(rule, endpoint=endpoint) == []
    assert only(findings(rule, PRODUCTION, endpoint=endpoint)) == (
        "endpoint.volume_key_arn",
        "the key is in us-east-1, and the endpoint of `production` in eu-west-1",
        "Name a key of eu-west-1 under `environments: production:`.",
    )


@pytest.mark.parametrize(("instance", "is_warned"), [("g4dn.xlarge", True), ("p3.2xlarge", False)])
def test_a_local_disk_has_a_key_of_its_own(instance: str, *, is_warned: bool) -> None:
    name = f"ml.{instance}"
    plan = planned(volume_key_arn=KEY, instances=[name])
    found = [each.message for each in plan.warnings if each.code == "volume-key-without-volume"]
    message = (
        f"{name} stores the model on its local NVMe disk. AWS encrypts that disk with a key of "
        "the machine's own, and not with `volume_key_arn`."
    )
    assert found == ([message] if is_warned else [])
    without = planned(instances=[name])
    assert "volume-key-without-volume" not in {each.code for each in without.warnings}


def test_the_plan_tells_the_key() -> None:
    plan = planned(volume_key_arn=KEY, instances=["ml.p3.2xlarge"], volume_size_gb=30)
    lines = dict(line.split(maxsplit=1) for line in describe_plan(plan).splitlines())
    assert lines["volume"] == f"30 GB, encrypted with {KEY}"
    assert resources_of(plan)["AWS::IAM::Policy"] == 1
