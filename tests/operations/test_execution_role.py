"""An existing execution role: the printed rights are enough, each is looked for, and trust too."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.access import Access
from slipway.config.load import load_config
from slipway.errors import Problem
from slipway.operations.preflight.execution_role import examine_role
from slipway.operations.preflight.findings import parted
from slipway.operations.status import find_status
from slipway.planning.plan import DeploymentPlan
from slipway.rights.commands import role_policy
from tests.support.accounts import denying_access
from tests.support.plans import plan_for, with_endpoint
from tests.support.projects import DIGEST, LOCAL
from tests.support.slipway_stack import SlipwayStack, slipway_stack
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")

CASE = "execution-role"
NAME = f"{CASE}-local"
ROLE = "arn:aws:iam::123456789012:role/ml/serving"
SOURCE = f"arn:aws:sagemaker:{LOCAL.region}:{LOCAL.account}:*"
_CASE = Path(__file__).parents[1] / "golden" / "cases" / f"{CASE}.yaml"
TRUST: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": {
        "Effect": "Allow",
        "Principal": {"Service": "sagemaker.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {
            "StringEquals": {"aws:SourceAccount": LOCAL.account},
            "ArnLike": {"aws:SourceArn": SOURCE},
        },
    },
}


def planned() -> DeploymentPlan:
    config = load_config(_CASE, _CASE.parent, "local", ("local",)).config
    return plan_for(config)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path_factory.mktemp("role"), time_scale=0.005, model=CASE) as made:
        made.stacks.client("s3").create_bucket(Bucket="my-capture")
        yield made


@pytest.fixture
def iam(stack: SlipwayStack) -> Iterator[Any]:
    """IAM's client, with a role that trusts SageMaker and has the printed rights."""
    client = stack.stacks.client("iam")
    client.create_role(RoleName="serving", Path="/ml/", AssumeRolePolicyDocument=json.dumps(TRUST))
    put(client, role_policy(planned(), LOCAL))
    yield client
    client.delete_role_policy(RoleName="serving", PolicyName="rights")
    client.delete_role(RoleName="serving")


def put(iam: Any, policy: dict[str, Any]) -> None:
    iam.put_role_policy(RoleName="serving", PolicyName="rights", PolicyDocument=json.dumps(policy))


def examined(stack: SlipwayStack, access: Access | None = None) -> tuple[list[str], list[Problem]]:
    key = stack.stacks.client("ssm").get_parameter(Name="/slipway/local/artifact-key-arn")
    return parted(
        examine_role(
            planned(),
            ROLE,
            access or stack.access,
            key_arn=key["Parameter"]["Value"],
            made_group=None,
        )
    )


def test_an_endpoint_runs_with_the_printed_rights_alone(stack: SlipwayStack, iam: Any) -> None:
    assert examined(stack) == (
        [f"execution role {ROLE}, which trusts SageMaker", "the 9 rights of the execution role"],
        [],
    )
    assert stack.create("ok") == "CREATE_COMPLETE"
    assert stack.invoke("with a role of its own") == "with a role of its own"
    s3 = stack.stacks.client("s3")
    eventually(lambda: s3.list_objects_v2(Bucket="my-capture", Prefix=f"tiny/{NAME}/")["KeyCount"])
    (config,) = stack.stacks.client("sagemaker").list_models()["Models"]
    model = stack.stacks.client("sagemaker").describe_model(ModelName=config["ModelName"])
    assert model["ExecutionRoleArn"] == ROLE
    differing = find_status(NAME, stack.access, plan=planned(), log_line_count=0).differences
    assert "endpoint.execution_role_arn" not in {each.setting for each in differing}
    made = with_endpoint(planned(), execution_role_arn=None)
    (other,) = (
        each
        for each in find_status(NAME, stack.access, plan=made, log_line_count=0).differences
        if each.setting == "endpoint.execution_role_arn"
    )
    assert (other.deployed, other.files) == (ROLE, None)
    assert stack.delete() == "DELETE_COMPLETE"


@pytest.mark.parametrize(
    ("sid", "missing"),
    [
        ("ReadArtifacts", f"s3:GetObject on arn:aws:s3:::{LOCAL.artifact_bucket}/artifacts/*"),
        ("ListArtifacts", f"s3:ListBucket on arn:aws:s3:::{LOCAL.artifact_bucket}"),
        (
            "PullImage",
            ", ".join(
                f"ecr:{action} on arn:aws:ecr:us-east-1:123456789012:repository/slipway/tensorrt"
                for action in (
                    "BatchCheckLayerAvailability", "BatchGetImage", "GetDownloadUrlForLayer",
                )
            ),
        ),
        ("LogInToRegistry", "ecr:GetAuthorizationToken on *"),
        ("PublishMachineMetrics", "cloudwatch:PutMetricData on *"),
        ("WriteCaptured", f"s3:PutObject on arn:aws:s3:::my-capture/tiny/{NAME}/*"),
        (
            "WatchRollbackAlarms",
            "cloudwatch:DescribeAlarms on "
            f"arn:aws:cloudwatch:us-east-1:123456789012:alarm:{NAME}-*",
        ),
    ],
)  # fmt: skip
def test_a_right_that_the_role_lacks_is_named(
    stack: SlipwayStack, iam: Any, sid: str, missing: str
) -> None:
    policy = role_policy(planned(), LOCAL)
    kept = [statement for statement in policy["Statement"] if statement["Sid"] != sid]
    put(iam, {**policy, "Statement": kept})
    _, (problem,) = examined(stack)
    assert problem.message == f"the role {ROLE} lacks the right {sid}: {missing}"
    assert problem.remedy == (
        "Give the role what `slipway iam execution-role --execution-role --env local` prints."
    )


def test_a_narrower_right_is_not_enough(stack: SlipwayStack, iam: Any) -> None:
    policy = json.dumps(role_policy(planned(), LOCAL))
    put(iam, json.loads(policy.replace("/artifacts/*", f"/artifacts/{DIGEST}/*")))
    _, (problem,) = examined(stack)
    assert "lacks the right ReadArtifacts" in problem.message


def test_sagemaker_must_be_trusted_for_this_account(stack: SlipwayStack, iam: Any) -> None:
    untrusted = (
        f"the role {ROLE} does not let SageMaker assume it for account 123456789012",
        "Allow `sts:AssumeRole` to the service sagemaker.amazonaws.com in its trust policy. A "
        f"condition on `aws:SourceArn` must allow {SOURCE}.",
    )
    text = json.dumps(TRUST)
    for wrong in (
        text.replace("sagemaker.amazonaws.com", "ec2.amazonaws.com"),
        text.replace("sts:AssumeRole", "sts:TagSession"),
        text.replace(LOCAL.account, "210987654321"),
        # SageMaker names no endpoint when it hosts.
        text.replace(SOURCE, SOURCE.replace(":*", ":endpoint/*")),
    ):
        iam.update_assume_role_policy(RoleName="serving", PolicyDocument=wrong)
        _, (problem,) = examined(stack)
        assert (problem.message, problem.remedy) == untrusted


def test_a_role_that_does_not_exist_is_named(stack: SlipwayStack) -> None:
    found, (problem,) = examined(stack)
    assert (found, problem.message, problem.remedy) == (
        [],
        f"the role {ROLE} does not exist",
        "Correct `execution_role_arn`, or make the role.",
    )


def test_credentials_that_may_not_look_are_told(stack: SlipwayStack) -> None:
    denied = ("GetRole", "SimulatePrincipalPolicy")
    assert examined(stack, denying_access(stack.stacks.aws.connection.url, *denied)) == (
        [
            f"not checked: the trust policy of {ROLE}, because these credentials may not "
            "iam:GetRole",
            f"not checked: the rights of {ROLE}, because these credentials may not "
            "iam:SimulatePrincipalPolicy",
        ],
        [],
    )
