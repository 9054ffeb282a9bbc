"""`slipway iam`: the policy has the calls that commands make, and nothing else."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from slipway.access import Access
from slipway.errors import UserError
from slipway.operations.invoke import Request, invoke, invoke_stream
from slipway.operations.leftovers import find_leftovers
from slipway.operations.permissions import least_policy
from slipway.operations.preflight import preflight
from slipway.operations.status import find_status
from slipway.project import Project
from slipway.publishing.publish import planned_job, publish
from tests.publishing.progress import Progress
from tests.support.projects import LOCAL, config_text, write_project
from tests.support.recorded_calls import RecordedCalls
from tests.support.slipway_stack import MODEL, NAME, slipway_stack


@pytest.mark.size("all")
def test_the_policy_is_what_the_commands_need(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    write_project(root, {MODEL: config_text(MODEL)})
    (root / "samples/tiny/mode").write_text("ok")
    project = Project(root)
    with slipway_stack(tmp_path / "account", time_scale=0.005) as stack:
        access = Access(
            LOCAL.region,
            {
                "AWS_ENDPOINT_URL": stack.stacks.aws.url,
                "S3_ENDPOINT_URL": stack.stacks.aws.url,
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
            },
        )
        recorded = RecordedCalls(access, f"{LOCAL.region}:{LOCAL.account}")
        publish(project, MODEL, LOCAL, access, Progress())
        plan = project.plan(MODEL, LOCAL)
        preflight(plan, access)
        assert stack.create("ok") == "CREATE_COMPLETE"
        # Where an endpoint is live, preflight looks at its scalable targets as well.
        preflight(plan, access)
        find_status(NAME, access, plan=plan, log_line_count=5)
        request = Request(NAME, b"x", "application/json", "application/json", None)
        invoke(request, access)
        # The stand-in does not stream.
        with contextlib.suppress(UserError):
            invoke_stream(request, access, lambda _: None)
        find_leftovers(MODEL, LOCAL, access)
        assert stack.delete() == "DELETE_COMPLETE"
    compiling, weights = planned_job(project, MODEL, LOCAL)
    policy = least_policy(plan, LOCAL, compiling=compiling, weights=weights)
    assert recorded.denied_by(policy) == set()
    # The CDK CLI assumes its bootstrap's roles.
    assert recorded.unused_of(policy) == {("Deploy", "sts:AssumeRole")}
    assert "*" not in "".join(action for each in policy["Statement"] for action in each["Action"])
    assert json.loads(json.dumps(policy)) == policy
