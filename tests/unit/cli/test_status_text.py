"""How `slipway status` is written for people."""

from datetime import UTC, datetime
from typing import Any

import pytest

from slipway.cli.status import print_status, status_rows
from slipway.deployed.fields import running_instances
from slipway.deployed.served import Served
from slipway.operations.deployment import Deployment
from slipway.operations.status import Status
from slipway.operations.status.report import EndpointStatus, Variant

PAGE = "https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-create-invoke-update.html"

COMMAND = "aws cloudformation continue-update-rollback --stack-name tiny-local"


def status_with(**known: Any) -> Status:
    unknown = dict.fromkeys(("planned", "endpoint", "deployment", "declared"))
    nothing: dict[str, Any] = dict.fromkeys(("differences", "alarms", "trips", "log_lines"), ())
    return Status(log_group="/aws/sagemaker/Endpoints/tiny", **(unknown | nothing | known))


def test_a_pool_tells_which_types_run() -> None:
    pool = {"ml.g4dn.xlarge": 0, "ml.g5.xlarge": 1}
    described = [{"InstanceType": each, "CurrentInstanceCount": n} for each, n in pool.items()]
    running = running_instances({"InstancePools": described})
    endpoint = EndpointStatus(
        name="tiny",
        status="InService",
        changed=datetime(2026, 11, 26, tzinfo=UTC),
        failure_reason=None,
        served=Served("config"),
        variants=(Variant("AllTraffic", tuple(pool), 1, 1, None, None, running=running),),
        answers=None,
        component=None,
    )
    rows = status_rows(status_with(endpoint=endpoint), None, None)
    assert ("running", "1 x ml.g5.xlarge") in rows
    assert not any("0 x" in text for _, text in rows)


def test_no_address_and_no_command_is_broken_over_lines(capsys: pytest.CaptureFixture[str]) -> None:
    failures = (f"Endpoint: {PAGE} says why",)
    state, at = "UPDATE_ROLLBACK_FAILED", datetime(2026, 11, 26, tzinfo=UTC)
    deployment = Deployment("tiny-local", state, at, None, failures, False, ("Endpoint",))
    print_status(status_with(deployment=deployment), None)
    lines = capsys.readouterr().out.splitlines()
    for whole in (PAGE, f"`{COMMAND}`"):
        assert any(whole in line for line in lines)
