"""How `slipway status` is written for people."""

from datetime import UTC, datetime

import pytest

from slipway.cli.status import print_status
from slipway.operations.deployment import Deployment
from slipway.operations.status import Status

PAGE = "https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-create-invoke-update.html"

COMMAND = "aws cloudformation continue-update-rollback --stack-name tiny-local"


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
