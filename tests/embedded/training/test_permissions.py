"""`slipway iam` of a model that a training job compiles."""

import pytest

from slipway.errors import UserError
from slipway.operations.preflight import preflight
from slipway.project import Project
from slipway.publishing.publish import planned_job
from slipway.rights.pipeline import least_policy
from tests.embedded.training.publishing import STAGING
from tests.support.recorded_calls import RecordedCalls

pytestmark = [pytest.mark.size("all"), pytest.mark.timeout(120)]
# What only a deployed model needs; tests/operations has those.
OTHERS = {
    "Deploy", "Invoke", "ReadStack", "ReadEndpoint", "ReadConfigsAndModels",
    "ListWhatHasNoNarrowerResource", "ReadLog",
    # For files that change while they are sent; tests/operations has one.
    "RemoveFiles",
}  # fmt: skip


@pytest.mark.parametrize("isolated", [False, True])
def test_publishing_needs_what_the_policy_has(publishing, isolated):
    stack = "foundation-staging"
    if isolated:
        stack = "artifacts-tiny-staging"
        publishing.edit_config("  compile:\n", "  isolated: true\n  compile:\n")
        publishing.put_parameters("staging/models/tiny")
    publishing.build_image()
    recorded = RecordedCalls(publishing.access, f"{STAGING.region}:{STAGING.account}")
    publishing.write("fail")
    publishing.refused(STAGING)
    publishing.write("ok")
    publishing.run(STAGING)
    project = Project(publishing.root)
    plan = project.plan("tiny", STAGING)
    # The topic's parameter is not there, and the rest is looked for all the same.
    with pytest.raises(UserError, match="notification-topic-arn is not there"):
        preflight(plan, publishing.access)
    compiling, weights = planned_job(project, "tiny", STAGING)
    policy = least_policy(plan, STAGING, [(compiling, weights)])
    denied = recorded.denied_by(policy)
    # The tests' role is not a foundation's.
    assert denied == {("iam:PassRole", publishing.account.role)}
    foundation = f"arn:aws:iam::123456789012:role/{stack}-CompilingRole0A1B2C3D-x"
    recorded.made = (recorded.made - denied) | {("iam:PassRole", foundation)}
    assert recorded.denied_by(policy) == set()
    unused = {pair for pair in recorded.unused_of(policy) if pair[0] not in OTHERS}
    assert unused == set()
