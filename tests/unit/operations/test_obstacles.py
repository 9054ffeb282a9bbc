"""What stands in the way of a deployment, and the way out."""

from datetime import UTC, datetime

import pytest

from slipway.operations.deployment import Deployment, find_obstacle, told

DELETE = "`aws cloudformation delete-stack --stack-name tiny-local`"
UNPROTECT = (
    "`aws cloudformation update-termination-protection --no-enable-termination-protection "
    "--stack-name tiny-local`"
)


def stack(status: str, *stuck: str, is_protected: bool = False) -> Deployment:
    changed = datetime(2026, 11, 26, tzinfo=UTC)
    return Deployment("tiny-local", status, changed, None, (), is_protected, stuck)


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
def test_a_status_is_in_progress_or_failed(status, in_progress, failed):
    assert (stack(status).in_progress, stack(status).failed) == (in_progress, failed)


@pytest.mark.parametrize(
    ("deployment", "has_endpoint", "gone", "text"),
    [
        (None, False, None, None),
        (stack("REVIEW_IN_PROGRESS"), False, None, None),
        (
            None,
            True,
            None,
            "there is no stack of the endpoint tiny-local, and a new one cannot make an endpoint "
            "that is there. Delete it with `aws sagemaker delete-endpoint --endpoint-name "
            "tiny-local` when nobody uses it, and what `slipway leftovers` lists. Then deploy "
            "[SW727]",
        ),
        (stack("CREATE_COMPLETE"), True, None, None),
        # The copies on another model's endpoint.
        (stack("CREATE_COMPLETE"), None, None, None),
        (
            stack("UPDATE_ROLLBACK_COMPLETE"),
            False,
            None,
            "the endpoint tiny-local was deleted, and an update of its stack fails. Destroy the "
            "stack and deploy it [SW726]",
        ),
        (stack("CREATE_IN_PROGRESS"), False, None, None),
        (stack("DELETE_IN_PROGRESS"), True, "model x", None),
        (
            stack("UPDATE_COMPLETE"),
            True,
            "model x",
            "its model x was deleted, so that updates of the endpoint and new instances can fail. "
            "Make it again under this name, or destroy the stack and deploy it [SW719]",
        ),
        (stack("ROLLBACK_COMPLETE"), False, None, None),
        (
            stack("ROLLBACK_COMPLETE", is_protected=True),
            False,
            None,
            "the stack has to be deleted first, and is protected. Read the log, then run "
            f"{UNPROTECT} and {DELETE} [SW725]",
        ),
        (
            stack("CREATE_FAILED", "Endpoint"),
            True,
            None,
            f"nothing was removed after the failure. Read the log, then run {DELETE} [SW725]",
        ),
        (
            stack("ROLLBACK_FAILED", "Role"),
            False,
            None,
            "the first deployment could not be undone. Remove the cause, then run "
            f"{DELETE} [SW725]",
        ),
        (
            stack("DELETE_FAILED", "Role", "Key", is_protected=True),
            False,
            None,
            f"the stack is half deleted. Remove the cause, then run {UNPROTECT} and {DELETE}. If "
            "the cause stays, add `--retain-resources Role Key` [SW725]",
        ),
        (
            stack("UPDATE_FAILED"),
            True,
            None,
            "the failed update was not undone. Run `aws cloudformation rollback-stack --stack-name "
            "tiny-local`, then deploy [SW725]",
        ),
    ],
)
def test_an_obstacle_has_its_way_out(deployment, has_endpoint, gone, text):
    found = find_obstacle("tiny-local", deployment, has_endpoint=has_endpoint, gone=gone)
    assert (found and told(found)) == text
