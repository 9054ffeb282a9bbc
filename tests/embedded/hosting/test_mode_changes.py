"""Preflight's look at the mode of a live endpoint: AWS documents no update between the modes."""

from typing import Any

import pytest

from slipway.access import Access
from slipway.codes.code import Code
from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.live import compare_mode
from slipway.planning.plan import DeploymentPlan
from tests.embedded.hosting.hosted_components import Hosted
from tests.support.accounts import access_to
from tests.support.golden_cases import make_plan
from tests.support.plans import plan_for, renamed
from tests.support.projects import model_config

SCALED: dict[str, Any] = {
    "mode": "scale_to_zero",
    # The instances follow the copies.
    "instance_count": 1,
    "scale_to_zero": {"max_copies": 2, "target_concurrent_requests_per_copy": 4},
}
COMPONENTS = "an endpoint of inference components"


def planned(endpoint_name: str, section: dict[str, Any]) -> DeploymentPlan:
    config = model_config(endpoint=section)
    plan = plan_for(config)
    return renamed(plan, endpoint_name=endpoint_name)


@pytest.fixture
def access(account: Any) -> Access:
    return access_to(account.clients.connection.url)


def test_an_endpoint_neither_falls_asleep_nor_wakes_for_good(account, access):
    asleep, awake = Hosted(account).endpoint(), account.endpoint()
    changes = [
        (asleep, SCALED, {}, f"is {COMPONENTS} and would become real-time"),
        (awake, {}, SCALED, f"is real-time and would become {COMPONENTS}"),
    ]
    for name, same, other, change in changes:
        assert parted(compare_mode(planned(name, same), access)) == ([], [])
        found, (problem,) = parted(compare_mode(planned(name, other), access))
        assert (found, problem.code) == ([], Code.MODE_CHANGE)
        assert problem.message == f"{name} {change}, and AWS documents no such update"
        assert problem.remedy == (
            "Run `cdk destroy tiny -c models=tiny -c env=local` when nobody uses the endpoint, "
            "then deploy."
        )
    assert parted(compare_mode(planned("not-there", SCALED), access)) == ([], [])
    # A configuration can be deleted under its endpoint.
    config = account.sagemaker.describe_endpoint(EndpointName=awake)["EndpointConfigName"]
    account.sagemaker.delete_endpoint_config(EndpointConfigName=config)
    assert parted(compare_mode(planned(awake, SCALED), access)) == (
        [f"not compared: the mode of {awake}, as {config} was deleted"],
        [],
    )


def test_instances_do_not_become_serverless(account, access, tmp_path):
    plan = renamed(make_plan("serverless", tmp_path), endpoint_name=account.endpoint())
    _, (problem,) = parted(compare_mode(plan, access))
    assert problem.message == (
        f"{plan.endpoint_name} is real-time and would become serverless, which SageMaker refuses"
    )
