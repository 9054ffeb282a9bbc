"""How `slipway status` is written for people."""

from datetime import UTC, datetime

import pytest

from slipway.cli.status import print_status, status_rows
from slipway.deployed.fields import running_instances
from slipway.deployed.served import Served
from slipway.operations.deployment import Deployment
from slipway.operations.status import Status
from slipway.operations.status.report import EndpointStatus, Variant

PAGE = "https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-create-invoke-update.html"

COMMAND = "aws cloudformation continue-update-rollback --stack-name tiny-local"


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
    status = Status(
        planned=None,
        differences=(),
        endpoint=endpoint,
        deployment=None,
        declared=None,
        alarms=(),
        trips=(),
        log_group="/aws/sagemaker/Endpoints/tiny",
        log_lines=(),
    )
    rows = status_rows(status, None, None)
    assert ("running", "1 x ml.g5.xlarge") in rows
    assert not any("0 x" in text for _, text in rows)


def test_no_address_and_no_command_is_broken_over_lines(capsys: pytest.CaptureFixture[str]) -> None:
    deployment = Deployment(
        stack="tiny-local",
        status="UPDATE_ROLLBACK_FAILED",
        changed=datetime(2026, 11, 26, tzinfo=UTC),
        endpoint_config_arn=None,
        failures=(f"Endpoint: {PAGE} says why",),
        is_protected=False,
        stuck=("Endpoint",),
    )
    status = Status(
        planned=None,
        differences=(),
        endpoint=None,
        deployment=deployment,
        declared=None,
        alarms=(),
        trips=(),
        log_group="/aws/sagemaker/Endpoints/tiny-local",
        log_lines=(),
    )
    print_status(status, None)
    lines = capsys.readouterr().out.splitlines()
    for whole in (PAGE, f"`{COMMAND}`"):
        assert any(whole in line for line in lines)
