"""`slipway iam` as a shell sees it, and what is in its policy."""

import json
from collections.abc import Callable

import pytest

from slipway.config.environments import Environment
from slipway.config.sections.artifacts import HubWeights, S3Weights
from slipway.deployed.reader import read_endpoint
from slipway.project import Project
from slipway.rights.pipeline import Weights, least_policy
from tests.support.described_endpoints import NAME, REGION, FakeAws, answers
from tests.support.projects import PRODUCTION, config_text, write_project


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(write_project(tmp_path, {"tiny": config_text("tiny")}, published=["tiny"]))


@pytest.fixture
def printed(project, monkeypatch, slipway_command) -> Callable[..., dict[str, dict]]:
    """Runs the command in the project; gives the statements that it prints."""
    monkeypatch.chdir(project.root)

    def run(*arguments: str) -> dict[str, dict]:
        return by_sid(json.loads(slipway_command.done("iam", *arguments, "--env", "production")))

    return run


def by_sid(policy: dict) -> dict[str, dict]:
    assert policy["Version"] == "2012-10-17"
    found = {each["Sid"]: each for each in policy["Statement"]}
    assert len(found) == len(policy["Statement"])
    return found


def right(statement: dict) -> tuple[list[str], list[str]]:
    return statement["Action"], statement["Resource"]


def statements(
    project: Project, environment: Environment = PRODUCTION, weights: Weights | None = None
) -> dict[str, dict]:
    # The plan's region does not matter to it.
    plan = project.plan("tiny", PRODUCTION)
    return by_sid(least_policy(plan, environment, [(None, weights)]))


def test_everything_is_of_the_model_or_of_what_it_shares(project, printed):
    found = printed("tiny")
    assert found == statements(project)
    assert found["Invoke"]["Resource"] == [
        "arn:aws:sagemaker:eu-west-1:210987654321:endpoint/tiny-production"
    ]
    bucket = "arn:aws:s3:::slipway-production-210987654321-eu-west-1"
    assert found["WriteArtifacts"]["Resource"] == [
        f"{bucket}/artifacts/*",
        f"{bucket}/incoming/shared/*",
    ]
    repository = "arn:aws:ecr:eu-west-1:210987654321:repository/slipway/tensorrt"
    assert found["FindImage"]["Resource"] == [repository]
    assert found["UseArtifactKey"]["Condition"] == {
        "StringEquals": {"kms:ViaService": "s3.eu-west-1.amazonaws.com"},
        "ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/slipway-production"},
    }
    everywhere = [sid for sid, each in found.items() if "*" in each["Resource"]]
    assert everywhere == ["ListWhatHasNoNarrowerResource"]


def test_keys_and_roles_that_exist_may_be_looked_at(project):
    builds = PRODUCTION.image_builds.model_copy(update={"repository_key": "artifact"})
    keyed = PRODUCTION.model_copy(update={"image_builds": builds})
    assert statements(project)["FindImage"]["Action"] == ["ecr:DescribeImages"]
    assert statements(project, keyed)["FindImage"]["Action"] == [
        "ecr:DescribeImages",
        "ecr:DescribeRepositories",
    ]
    role = "arn:aws:iam::210987654321:role/serving"
    config = project.root / "model_configs" / "tiny.yaml"
    text = config.read_text("utf-8")
    config.write_text(text.replace("endpoint:\n", f"endpoint:\n  execution_role_arn: {role}\n", 1))
    found = statements(project)["ExamineExecutionRole"]
    assert right(found) == (["iam:GetRole", "iam:SimulatePrincipalPolicy"], [role])


def test_weights_elsewhere_are_read_and_a_commit_of_the_hub_is_remembered(project):
    weights = S3Weights(source="s3", uri="s3://lake/models/tiny/")
    found = statements(project, weights=weights)
    assert right(found["FindWeights"]) == (["s3:ListBucket"], ["arn:aws:s3:::lake"])
    assert right(found["ReadWeights"]) == (["s3:GetObject"], ["arn:aws:s3:::lake/models/tiny/*"])
    assert "RememberRecipes" not in found
    weights = HubWeights(source="hub", repository="openai/gpt2", revision="0" * 40)
    found = statements(project, weights=weights)
    assert found["RememberRecipes"]["Action"] == ["s3:GetObject", "s3:PutObject"]
    assert "ReadWeights" not in found


def test_captured_answers_of_a_shadow_may_be_read_with_their_key(tmp_path):
    key = "arn:aws:kms:eu-west-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    lines = (
        "endpoint:\n  shadow: {sampling_percent: 10}\n"
        f"  data_capture: {{destination: 's3://mine/', key_arn: '{key}'}}\n"
    )
    text = config_text("tiny", ("endpoint:\n", lines))
    found = statements(Project(write_project(tmp_path, {"tiny": text}, published=["tiny"])))
    folder = "tiny-production/*"
    assert found["ReadCaptured"]["Resource"] == [f"arn:aws:s3:::mine/{folder}"]
    assert found["ListCaptured"]["Condition"] == {"StringLike": {"s3:prefix": folder}}
    assert right(found["UseCaptureKey"]) == (["kms:Decrypt"], [key])


@pytest.mark.parametrize(
    ("region", "partition", "s3"),
    [
        ("cn-north-1", "aws-cn", "s3.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "aws-us-gov", "s3.us-gov-west-1.amazonaws.com"),
    ],
)
def test_other_partitions_have_arns_and_services_of_their_own(project, region, partition, s3):
    away = PRODUCTION.model_copy(update={"region": region})
    found = statements(project, away)
    arns = [arn for each in found.values() for arn in each["Resource"] if arn != "*"]
    assert all(arn.startswith(f"arn:{partition}:") for arn in arns)
    assert found["UseArtifactKey"]["Condition"]["StringEquals"]["kms:ViaService"] == s3


def test_it_prints_what_prune_needs_in_an_environment(printed):
    found = printed("--prune")
    bucket = "arn:aws:s3:::slipway-production-210987654321-eu-west-1"
    assert found["DeleteArtifacts"]["Resource"] == [
        f"{bucket}/artifacts/*",
        f"{bucket}/models/*",
        f"{bucket}/compile/*",
    ]
    assert found["DeleteImages"]["Resource"] == [
        "arn:aws:ecr:eu-west-1:210987654321:repository/slipway/*"
    ]
    assert found["UseArtifactKeys"]["Condition"] == {
        "StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket, f"{bucket}/*"]}
    }


STAGING = """\
staging:
  account: "111111111111"
  region: us-west-2
"""


def promotion(project: Project, printed) -> dict[str, dict]:
    path = project.root / "environments.yaml"
    path.write_text(path.read_text("utf-8") + STAGING, "utf-8")
    return printed("tiny", "--from", "staging")


def test_a_promotion_reads_one_bucket_and_writes_the_other(project, printed):
    found = promotion(project, printed)
    source = "arn:aws:s3:::slipway-staging-111111111111-us-west-2"
    target = "arn:aws:s3:::slipway-production-210987654321-eu-west-1"
    assert {sid: right(each) for sid, each in found.items()} == {
        "FindArtifacts": (["s3:ListBucket"], [target]),
        "WriteArtifacts": (
            ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"],
            [f"{target}/artifacts/*", f"{target}/incoming/shared/*"],
        ),
        "UseArtifactKey": (
            ["kms:Decrypt", "kms:GenerateDataKey"],
            ["arn:aws:kms:eu-west-1:210987654321:key/*"],
        ),
        "FindSource": (["s3:ListBucket"], [source]),
        "ReadSource": (["s3:GetObject"], [f"{source}/artifacts/*"]),
        "UseSourceKey": (["kms:Decrypt"], ["arn:aws:kms:us-west-2:111111111111:key/*"]),
    }
    assert found["UseSourceKey"]["Condition"] == {
        "StringEquals": {"kms:ViaService": "s3.us-west-2.amazonaws.com"},
        "ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/slipway-staging"},
    }


def test_a_promotion_of_an_isolated_model_touches_its_own_prefix_alone(project, printed):
    isolated = ("    target: sm75\n", "    target: sm75\n  isolated: true\n")
    path = project.root / "model_configs/tiny.yaml"
    path.write_text(config_text("tiny", isolated), "utf-8")
    found = promotion(project, printed)
    own, sent = "models/tiny/", "incoming/models/tiny/"
    for sid, prefixes in (("FindArtifacts", [own, sent]), ("FindSource", [own])):
        listed = {"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in prefixes]}}
        assert found[sid]["Condition"] == listed
    for sid, places in (
        ("WriteArtifacts", [f"{own}artifacts/", sent]),
        ("ReadSource", [f"{own}artifacts/"]),
    ):
        assert [each.partition("/")[2] for each in found[sid]["Resource"]] == [
            f"{place}*" for place in places
        ]
    assert found["FindArtifactKey"]["Resource"] == [
        "arn:aws:ssm:eu-west-1:210987654321:parameter/slipway/production/models/tiny/"
        "artifact-key-arn"
    ]


def test_a_promotion_needs_two_environments(project, monkeypatch, slipway_command):
    monkeypatch.chdir(project.root)
    for command in ("iam", "publish"):
        run = slipway_command.of(command, "tiny", "--env", "production", "--from")
        assert run.refused("production") == (
            "1 problem\n- `production` is the source and the target of the promotion [SW418]\n"
            "    Name two environments: `slipway publish tiny --env TARGET --from TESTED`. Without "
            "`--env`, the target is `local`.\n"
        )
        assert "there is no environment 'stagin' [SW208]" in run.refused("stagin")


def test_the_rights_of_an_import_are_those_of_its_calls(printed):
    found = printed("--import", "chat-old")
    assert found["ReadEndpoint"]["Resource"] == [
        "arn:aws:sagemaker:eu-west-1:210987654321:endpoint/chat-old"
    ]
    aws = FakeAws(answers())
    read_endpoint(aws.client, NAME, REGION)
    allowed = {action.partition(":")[2] for each in found.values() for action in each["Action"]}
    made = {"ListBucket" if call == "ListObjectsV2" else call for call in aws.calls}
    # Settings in the model data, hints and inference components are not there.
    components = {"DescribeInferenceComponent", "ListInferenceComponents"}
    unused = {"Decrypt", "GetObject", "ListEndpoints", *components}
    assert made == allowed - unused


def test_the_rights_of_an_existing_role_are_printed(printed):
    found = printed("tiny", "--execution-role")
    assert list(found) == [
        "ReadArtifacts", "ListArtifacts", "DecryptArtifacts", "PullImage", "LogInToRegistry",
        "WriteLogs", "PublishMachineMetrics",
    ]  # fmt: skip
    # Nobody knows the id of the key that the foundation makes.
    assert found["DecryptArtifacts"] == {
        "Sid": "DecryptArtifacts",
        "Effect": "Allow",
        "Action": ["kms:Decrypt"],
        "Resource": ["arn:aws:kms:eu-west-1:210987654321:key/*"],
        "Condition": {
            "ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/slipway-production"}
        },
    }
    assert found["ListArtifacts"]["Condition"] == {"StringLike": {"s3:prefix": "artifacts/*"}}


ONE = "give the name of a model, or --prune, or --import"
ALONE = "--execution-role goes with the name of a model alone"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), ONE),
        (("tiny", "--prune"), ONE),
        (("tiny", "--import", "chat-old"), ONE),
        (("--prune", "--import", "chat-old"), ONE),
        (("tiny", "--execution-role", "--remote"), ALONE),
        (("tiny", "--execution-role", "--from", "staging"), ALONE),
    ],
)
def test_one_policy_at_a_time(project, monkeypatch, slipway_command, arguments, message):
    monkeypatch.chdir(project.root)
    code, output, errors = slipway_command("iam", *arguments)
    assert code != 0
    assert not output
    assert message in " ".join(errors.split())
