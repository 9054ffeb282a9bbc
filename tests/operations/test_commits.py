"""The commit in a stack, and what preflight makes of it."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from botocore.exceptions import ClientError

from slipway.access import Access
from slipway.config.names import COMMIT_RULE
from slipway.operations.preflight import compare_commits
from slipway.planning.plan import DeploymentPlan
from slipway.stacks.assembly import plan_stack
from slipway.stacks.model_stack import record_commit
from tests.support.projects import LOCAL
from tests.support.repositories import commit, git, make_repository
from tests.support.slipway_stack import SlipwayStack
from tests.synth.assemblies import Assembly, new_app

pytestmark = pytest.mark.size("all")

SOME = "5f3e" * 10


@pytest.fixture
def rules(plan: DeploymentPlan, tmp_path: Path) -> str:
    """The rules that the app writes, for the commit SOME."""
    app = new_app(tmp_path / "cdk.out")
    target = cdk.Environment(account=LOCAL.account, region=LOCAL.region)
    plan_stack(app, "tiny", plan=plan, env=target)
    record_commit(app, SOME)
    found = Assembly(Path(app.synth().directory)).template("tiny")["Rules"]
    return json.dumps({COMMIT_RULE: found[COMMIT_RULE]})


def template(rules: str, commit: str, days: int = 7) -> dict[str, Any]:
    group = {"LogGroupName": "/some", "RetentionInDays": days}
    version = {
        "Type": "AWS::SSM::Parameter::Value<String>",
        "Default": "/cdk-bootstrap/hnb659fds/version",
    }
    return {
        "Parameters": {"BootstrapVersion": version},
        "Resources": {"Group": {"Type": "AWS::Logs::LogGroup", "Properties": group}},
        "Rules": json.loads(rules.replace(SOME, commit)),
    }


def told(plan: DeploymentPlan, access: Access, root: Path) -> list[str]:
    return list(compare_commits(plan, access, root))


def test_an_older_commit_over_a_newer_one_is_warned_of(
    plan: DeploymentPlan, rules: str, stack: SlipwayStack, tmp_path: Path
):
    root, name = tmp_path / "project", plan.stack_name
    root.mkdir()
    assert told(plan, stack.access, root) == []  # outside git
    make_repository(root)
    assert told(plan, stack.access, root) == []  # before the first commit
    old, new = commit(root), commit(root)
    assert told(plan, stack.access, root) == []  # before the first deploy
    assert stack.stacks.create(name, template(rules, old)) == "CREATE_COMPLETE"
    assert told(plan, stack.access, root) == []
    # CloudFormation has nothing to do for another commit alone, and keeps the commit.
    with pytest.raises(ClientError, match="No updates are to be performed"):
        stack.stacks.start_update(name, template(rules, new))
    assert stack.stacks.update(name, template(rules, new, days=14)) == "UPDATE_COMPLETE"
    assert told(plan, stack.access, root) == []
    git(root, "checkout", "--quiet", old)
    assert told(plan, stack.access, root) == [
        f"{name} was deployed from commit {new}, which is no ancestor of {old}: a deploy may "
        "take back what that commit has. Fetch it and the history, and merge it"
    ]
    # A commit that was never fetched.
    assert stack.stacks.update(name, template(rules, SOME)) == "UPDATE_COMPLETE"
    (line,) = told(plan, stack.access, root)
    assert f"from commit {SOME}, which the clone at {old} does not have: " in line
    # A stack that was deployed outside git.
    without = {"Resources": template(rules, old, days=30)["Resources"]}
    assert stack.stacks.update(name, without) == "UPDATE_COMPLETE"
    assert told(plan, stack.access, root) == []
