"""Roles and rights of models that a training job compiles, shared and isolated ones."""

import json
from pathlib import Path

import pytest

from slipway.errors import UserError
from slipway.operations.preflight import preflight
from slipway.planning.artifact_place import own_place
from slipway.project import Project
from slipway.publishing.publish import planned_job
from slipway.rights.pipeline import least_policy
from tests.embedded.training.publishing import EMBEDDED, STAGING, Publishing
from tests.support.recorded_calls import RecordedCalls
from tests.support.roles import make_role

pytestmark = [pytest.mark.size("all"), pytest.mark.timeout(120)]

PLACE = own_place("tiny", EMBEDDED)
# What only a deployed model needs; tests/operations has those.
OTHERS = {
    "Deploy", "Invoke", "ReadStack", "ReadEndpoint", "ReadConfigsAndModels",
    "ListWhatHasNoNarrowerResource", "ReadLog",
    # For files that change while they are sent; tests/operations has one.
    "RemoveFiles",
}  # fmt: skip


def lay_stack(publishing: Publishing) -> tuple[str, str]:
    """Makes what the golden template of such a stack makes; returns the role and the key."""
    template = json.loads(
        (
            Path(__file__).parents[2] / "golden" / "templates" / "artifacts-isolated-lmi.json"
        ).read_text("utf-8")
    )
    key = publishing.account.client("kms").create_key()["KeyMetadata"]["Arn"]
    (role,) = (each for each in template["Resources"].values() if each["Type"] == "AWS::IAM::Role")
    (policy,) = role["Properties"]["Policies"]
    text = json.dumps(policy["PolicyDocument"])
    text = text.replace("slipway-production-210987654321-eu-west-1", EMBEDDED.artifact_bucket)
    text = text.replace("isolated-lmi", "tiny")
    text = text.replace(
        "arn:aws:kms:eu-west-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ab", key
    )
    arn = make_role(publishing.account.client("iam"), "own-compile-role", json.loads(text))
    for name, value in ((PLACE.key_parameter, key), (PLACE.compile_role_parameter, arn)):
        publishing.account.client("ssm").put_parameter(Name=name, Value=value, Type="String")
    return arn, key


def test_it_compiles_under_its_own_prefix_with_the_least_role(publishing):
    shared = publishing.run()
    publishing.edit_config("  compile:\n", "  isolated: true\n  compile:\n")
    (problem,) = publishing.refused().problems
    assert str(problem) == (
        f"the SSM parameter {PLACE.key_parameter} is not there [SW506]\n"
        "    Run `cdk deploy artifacts-tiny -c env=local` first."
    )
    role, key = lay_stack(publishing)
    result = publishing.run()
    # The job that compiled the shared engine wrote where this publisher need not read.
    first, job = publishing.jobs()
    assert first["TrainingJobName"] != job["TrainingJobName"]
    assert job["RoleArn"] == role
    assert job["OutputDataConfig"] == {
        "S3OutputPath": f"s3://{PLACE.bucket}/compile/models/tiny/",
        "CompressionType": "NONE",
        "KmsKeyId": key,
    }
    (channel,) = job["InputDataConfig"]
    assert channel["DataSource"]["S3DataSource"]["S3Uri"] == PLACE.files_uri(
        result.weights_digest or ""
    )
    for item in publishing.objects(EMBEDDED, "models/") + publishing.objects(
        EMBEDDED, "compile/models/"
    ):
        head = publishing.account.s3.head_object(Bucket=PLACE.bucket, Key=item["Key"])
        assert head["SSEKMSKeyId"] == key, item["Key"]
    assert publishing.objects(EMBEDDED, f"models/tiny/artifacts/{result.digest}/files/")
    assert publishing.objects(EMBEDDED, "models/tiny/recipes/")
    # Compiled once there, too; and what is shared stays as it was.
    assert publishing.run().uploaded_bytes == 0
    assert len(publishing.jobs()) == 2
    publishing.edit_config("  isolated: true\n", "")
    assert publishing.run().digest == shared.digest
    assert Project(publishing.root).plan("tiny", EMBEDDED).artifact.root == ""


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
