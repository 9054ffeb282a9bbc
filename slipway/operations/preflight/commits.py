"""The commit that a stack was deployed from, beside the commit of this checkout."""

import json
from collections.abc import Iterator
from pathlib import Path

from slipway.access import Access, existing
from slipway.config.names import COMMIT_RULE
from slipway.git import find_commit, git
from slipway.planning.plan import DeploymentPlan


def compare_commits(plan: DeploymentPlan, access: Access, root: Path) -> Iterator[str]:
    """Yields a warning if the stack was deployed from a commit that this checkout lacks.

    Outside git nothing is compared, and neither is a stack that tells no commit.
    """
    head = find_commit(root, "HEAD")
    get = access.client("cloudformation").get_template
    answer = head and existing(get, "ValidationError", StackName=plan.stack_name)
    if not answer:
        return
    body = answer["TemplateBody"]
    template = json.loads(body) if isinstance(body, str) else body
    rule = template.get("Rules", {}).get(COMMIT_RULE)
    if rule is None:
        return
    deployed = rule["Assertions"][0]["Assert"]["Fn::Not"][0]["Fn::Contains"][0][0]
    # 0 for an ancestor, 1 for none, and another code for a commit that is not there.
    found = git(root, "merge-base", "--is-ancestor", deployed, "HEAD").returncode
    if found:
        where = f"is no ancestor of {head}" if found == 1 else f"the clone at {head} does not have"
        yield (
            f"{plan.stack_name} was deployed from commit {deployed}, which {where}: a deploy may "
            "take back what that commit has. Fetch it and the history, and merge it"
        )
