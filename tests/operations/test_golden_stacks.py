"""Every golden template of the local environment deploys, answers and leaves nothing."""

import io
import json
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slipway.access import Access
from slipway.cli.status import status_rows
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from slipway.operations.leftovers import find_leftovers
from slipway.operations.status import Status, find_status
from slipway.planning.artifact_place import own_place
from slipway.planning.plan import DeploymentPlan
from tests.support.accounts import access_to
from tests.support.golden_cases import GOOD, environment_of, make_plan, plan_content
from tests.support.imported_endpoints import ImportedPlan, told
from tests.support.plans import with_endpoint
from tests.support.projects import DIGEST, LOCAL, OTHER_DIGEST
from tests.support.slipway_stack import golden_template, lay_foundation, publish_functions
from tests.support.stacks import Stacks, account_stacks

PROGRAM = Path(__file__).parents[1] / "embedded" / "hosting" / "stand_in.py"
STAND_IN = ContainerProgram((sys.executable, str(PROGRAM)))
SCARCE = "ml.g4dn.4xlarge"  # only the pool of two engines has it
REPOSITORIES = ("slipway/tensorrt", "team/search", "search")


# The cases in every run of the tests; `make test-all` has the others.
_FIRST = (
    "every-alarm",
    "rollout-canary",
    "scale-to-zero-rolling",
    "schedules",
    "weighted-variants",
)
# Every resource and every setting of these is in another case too.
_REPEATED = {"autoscaling", "fixed-count", "scale-to-zero"}
# `test_vpc.py`, `test_async_stacks.py`, `test_execution_role.py` and
# `test_shared_endpoint.py` deploy these: with a network, keys, a queue, a role, a host. The guide
# docs/guides/variants.md deploys two models, which no import makes one config of. Nor is
# one made of the pool of two engines or of a serverless endpoint: tests below deploy these.
_OF_OTHER_TESTS = {
    "async", "async-from-zero", "execution-role", "guest", "host", "pool-of-two-engines",
    "scale-to-zero-vpc", "serverless", "variants-of-two-models", "volume-key", "vpc",
}  # fmt: skip


def cases() -> Iterator[Any]:
    """The cases, each with the size of the runs that have it."""
    for name in GOOD:
        if environment_of(name) == LOCAL and name not in _OF_OTHER_TESTS | _REPEATED:
            marks = () if name in _FIRST else (pytest.mark.size("all"),)
            yield pytest.param(name, marks=marks)


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stacks]:
    programs = dict.fromkeys(REPOSITORIES, STAND_IN)
    options = {"programs": programs, "time_scale": 0.05, "without_capacity": [SCARCE]}
    with account_stacks(tmp_path_factory.mktemp("golden"), **options) as stacks:
        lay_foundation(stacks)
        stacks.client("s3").put_object(
            Bucket=LOCAL.artifact_bucket, Key=f"artifacts/{DIGEST}/files/mode", Body=b"ok"
        )
        yield stacks


def lay_own_artifacts(stacks: Stacks, plan: dict[str, Any]) -> None:
    """Deploys the stack with an isolated model's key, and puts its files where it reads."""
    stack = plan["artifact_place"]["stack_id"]
    assert stacks.create(LOCAL.stack_name(stack), golden_template(stack)) == "CREATE_COMPLETE"
    place = own_place(plan["config"]["name"], LOCAL)
    key = stacks.client("ssm").get_parameter(Name=place.key_parameter)["Parameter"]["Value"]
    stacks.client("s3").put_object(
        Bucket=place.bucket,
        Key=f"{place.files_prefix(DIGEST)}mode",
        Body=b"ok",
        ServerSideEncryption="aws:kms",
        SSEKMSKeyId=key,
    )


@pytest.fixture(scope="module", params=list(cases()))
def deployed(stacks: Stacks, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Deploys a case for all tests of it, and lets none of it stay; gives its plan."""
    case = request.param
    plan = plan_content(case)
    if plan["artifact_place"]["root"]:
        lay_own_artifacts(stacks, plan)
    name = plan["endpoint_name"]
    create(stacks, name, case)
    yield plan
    assert stacks.delete(name) == "DELETE_COMPLETE"
    assert find_leftovers(plan["config"]["name"], LOCAL, access_of(stacks)) == []


def access_of(stacks: Stacks) -> Access:
    return access_to(stacks.aws.connection.url)


def create(stacks: Stacks, name: str, case: str) -> None:
    template = golden_template(case)
    publish_functions(stacks, json.loads(template))
    assert stacks.create(name, template) == "CREATE_COMPLETE"


def status_of(stacks: Stacks, name: str, plan: DeploymentPlan | None) -> Status:
    return find_status(name, access_of(stacks), plan=plan, log_line_count=0)


def test_it_answers_and_leaves_nothing(stacks: Stacks, deployed: dict[str, Any]) -> None:
    plan, name = deployed, deployed["endpoint_name"]
    status = status_of(stacks, name, None)
    assert status.troubles() == []
    assert status.endpoint is not None
    every = [*plan["variants"], *([plan["shadow"]] if "shadow" in plan else [])]
    assert [
        (v.name, v.instance_types, v.current_instance_count) for v in status.endpoint.variants
    ] == [(v["name"], tuple(v["instance_types"]), v["instance_count"]) for v in every]
    runtime = stacks.client("sagemaker-runtime")
    component = {"InferenceComponentName": name} if "component" in plan else {}
    for variant in plan["variants"]:
        answer = runtime.invoke_endpoint(
            EndpointName=name, TargetVariant=variant["name"], Body=b"ping", **component
        )
        assert answer["InvokedProductionVariant"] == variant["name"]
        assert answer["Body"].read() == b"ping"


def test_its_import_gives_the_same_plan(
    stacks: Stacks, deployed: dict[str, Any], imported: ImportedPlan
) -> None:
    assert imported(stacks, deployed) == told(deployed)


def test_without_its_first_type_a_pool_starts_the_engine_of_the_next(
    stacks: Stacks, tmp_path: Path
) -> None:
    case = "pool-of-two-engines"
    plan = make_plan(case, tmp_path)
    assert plan.variants[0].instance_type == SCARCE
    stacks.client("s3").put_object(
        Bucket=LOCAL.artifact_bucket, Key=f"artifacts/{OTHER_DIGEST}/files/for-sm86", Body=b"ok"
    )
    create(stacks, plan.endpoint_name, case)
    runtime = stacks.client("sagemaker-runtime")
    answer = runtime.invoke_endpoint(EndpointName=plan.endpoint_name, Body=b"files")
    assert "for-sm86" in answer["Body"].read().decode()
    status = status_of(stacks, plan.endpoint_name, plan)
    assert (status.troubles(), status.differences) == ([], ())
    status = status_of(stacks, plan.endpoint_name, replace(plan, overrides=()))
    assert [each.setting for each in status.differences if "artifact" in each.setting] == [
        "artifact of ml.g5.xlarge",
        "artifact of ml.g5.2xlarge",
    ]
    assert stacks.delete(plan.endpoint_name) == "DELETE_COMPLETE"


def test_a_serverless_stack(stacks: Stacks, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("config.json"), io.BytesIO())
    stacks.client("s3").put_object(
        Bucket=LOCAL.artifact_bucket,
        Key=f"artifacts/{DIGEST}/files/model.tar.gz",
        Body=packed.getvalue(),
    )
    name, plan = "serverless-local", make_plan("serverless", tmp_path)
    create(stacks, name, "serverless")
    answer = stacks.client("sagemaker-runtime").invoke_endpoint(EndpointName=name, Body=b"ping")
    assert answer["Body"].read() == b"ping"
    status = status_of(stacks, name, plan)
    assert (status.troubles(), status.differences) == ([], ())
    rows = dict(status_rows(status, None, None))
    assert rows["serverless"] == "3072 MB, 10 requests at most, 1 container kept started"
    larger = plan.config.endpoint.serverless.model_copy(update={"memory_size_mb": 4096})
    changed = status_of(stacks, name, with_endpoint(plan, serverless=larger))
    settings = [str(each.setting) for each in changed.differences]
    assert settings == ["endpoint.serverless.memory_size_mb"]
    assert stacks.delete(name) == "DELETE_COMPLETE"
    assert find_leftovers("serverless", LOCAL, access_of(stacks)) == []
