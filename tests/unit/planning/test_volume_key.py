"""The key of the storage volumes in rules, advice and the plan's text."""

import pytest

from slipway.cli.plan_text import describe_plan
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resources import resources_of
from slipway.planning.rules import surroundings
from tests.support.plans import plan_for
from tests.support.projects import PRODUCTION, model_config
from tests.unit.planning.rule_findings import findings, only

KEY = "arn:aws:kms:us-east-1:123456789012:key/0a"


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
