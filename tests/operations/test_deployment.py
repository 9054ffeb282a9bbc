"""What the status of a stack means for its endpoint."""

from datetime import UTC, datetime

import pytest

from slipway.operations.deployment import Deployment


@pytest.mark.parametrize(
    ("status", "in_progress", "failed"),
    [
        ("CREATE_COMPLETE", False, False),
        ("CREATE_IN_PROGRESS", True, False),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", True, False),
        ("UPDATE_ROLLBACK_IN_PROGRESS", True, True),
        ("UPDATE_ROLLBACK_COMPLETE", False, True),
        ("ROLLBACK_COMPLETE", False, True),
        ("DELETE_FAILED", False, True),
        # A change set was made and never carried out: nothing happens.
        ("REVIEW_IN_PROGRESS", False, False),
    ],
)
def test_a_status_is_in_progress_or_failed(status: str, in_progress: bool, failed: bool) -> None:
    deployment = Deployment(
        stack="local-model",
        status=status,
        changed=datetime(2026, 11, 26, tzinfo=UTC),
        endpoint_config_arn=None,
        failures=(),
        is_protected=False,
    )
    assert (deployment.in_progress, deployment.failed) == (in_progress, failed)
