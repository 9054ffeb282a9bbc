"""`slipway iam`: the policy has the calls that commands make, and nothing else."""

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slipway.errors import UserError
from slipway.operations.invoke.realtime import Request, invoke, invoke_stream
from slipway.operations.leftovers import find_kept, find_leftovers
from slipway.operations.logs import read_log
from slipway.operations.preflight import compare_commits, preflight
from slipway.operations.status import find_status
from slipway.planning.artifact_place import own_place
from slipway.project import Project
from slipway.publishing.publish import planned_job, publish
from slipway.rights.pipeline import least_policy
from tests.publishing.progress import Changing, Progress
from tests.support.accounts import access_to
from tests.support.networks import make_network
from tests.support.projects import ENVIRONMENTS, LOCAL, config_text, write_project
from tests.support.recorded_calls import RecordedCalls
from tests.support.repositories import commit, make_repository
from tests.support.slipway_stack import MODEL, slipway_stack

CASES = Path(__file__).parents[1] / "golden" / "cases"


@pytest.mark.size("all")
@pytest.mark.parametrize("model", [MODEL, "scale-to-zero"])
def test_the_policy_is_what_the_commands_need(root: Path, tmp_path: Path, model: str) -> None:
    text = (CASES / f"{model}.yaml").read_text("utf-8")
    write_project(root, {model: config_text(MODEL) if model == MODEL else text})
    name = LOCAL.stack_name(model)
    (root / "samples/tiny/mode").write_text("ok")
    make_repository(root)
    commit(root)
    project = Project(root)
    with slipway_stack(tmp_path / "account", time_scale=0.005, model=model) as stack:
        access = access_to(stack.stacks.aws.connection.url)
        recorded = RecordedCalls(access, f"{LOCAL.region}:{LOCAL.account}")
        config = root / "samples/tiny/config.json"
        changing = Changing("uploading begins", lambda: config.write_text('{"a": 1}'))
        with pytest.raises(UserError, match="changed while it was published"):
            publish(project, model, LOCAL, access, changing)
        publish(project, model, LOCAL, access, Progress())
        plan = project.plan(model, LOCAL)
        preflight(plan, access)
        assert stack.create("ok") == "CREATE_COMPLETE"
        # Where an endpoint is live, preflight looks at its scalable targets as well.
        preflight(plan, access)
        assert list(compare_commits(plan, access, root)) == []
        find_status(name, access, plan=plan, log_line_count=5)
        list(read_log(access.client("logs"), plan.log_group_name, datetime.now(UTC)))
        component = None if plan.component is None else plan.component.name
        request = Request(name, b"x", "application/json", "application/json", None, component)
        invoke(request, access)
        # The stand-in does not stream.
        with contextlib.suppress(UserError):
            invoke_stream(request, access, lambda _: None)
        find_leftovers(model, LOCAL, access)
        find_kept(model, LOCAL, access)
        assert stack.delete() == "DELETE_COMPLETE"
    compiling, weights = planned_job(project, model, LOCAL)
    policy = least_policy(plan, LOCAL, [(compiling, weights)])
    assert recorded.denied_by(policy) == set()
    # The CDK CLI assumes its bootstrap's roles.
    assert recorded.unused_of(policy) == {("Deploy", "sts:AssumeRole")}
    assert "*" not in "".join(action for each in policy["Statement"] for action in each["Action"])
    assert json.loads(json.dumps(policy)) == policy


@pytest.mark.size("all")
def test_an_isolated_model_needs_its_own_prefix_and_key_alone(root: Path, tmp_path: Path) -> None:
    isolated = ("    target: sm75\n", "    target: sm75\n  isolated: true\n")
    write_project(root, {MODEL: config_text(MODEL, isolated)})
    project, place = Project(root), own_place(MODEL, LOCAL)
    listed: list[str] = []
    with slipway_stack(tmp_path / "account", time_scale=0.005) as stack:
        key = stack.stacks.client("kms").create_key()["KeyMetadata"]["Arn"]
        stack.stacks.client("ssm").put_parameter(Name=place.key_parameter, Value=key, Type="String")
        access = access_to(stack.stacks.aws.connection.url)
        recorded = RecordedCalls(access, f"{LOCAL.region}:{LOCAL.account}")
        access._session.events.register(
            "before-parameter-build.s3.ListObjectsV2",
            lambda params, **_: listed.append(params["Prefix"]),
        )
        publish(project, MODEL, LOCAL, access, Progress())
        plan = project.plan(MODEL, LOCAL)
        preflight(plan, access)
    compiling, weights = planned_job(project, MODEL, LOCAL)
    policy = least_policy(plan, LOCAL, [(compiling, weights)])
    assert recorded.denied_by(policy) == set()
    found = {each["Sid"]: each for each in policy["Statement"]}
    own = {"FindArtifacts", "WriteArtifacts", "UseArtifactKey", "FindFoundation"}
    assert {pair for pair in recorded.unused_of(policy) if pair[0] in own} == set()
    bucket = f"arn:aws:s3:::{LOCAL.artifact_bucket}"
    written = [f"models/{MODEL}/artifacts/*", f"incoming/models/{MODEL}/*"]
    assert found["WriteArtifacts"]["Resource"] == [f"{bucket}/{each}" for each in written]
    # The recorder looks at no condition.
    allowed = found["FindArtifacts"]["Condition"]["StringLike"]["s3:prefix"]
    assert allowed == [f"models/{MODEL}/*", f"compile/models/{MODEL}/*", written[1]]
    assert listed != []
    own_prefixes = tuple(each.removesuffix("*") for each in allowed)
    assert {prefix for prefix in listed if not prefix.startswith(own_prefixes)} == set()
    assert found["UseArtifactKey"]["Condition"]["ForAnyValue:StringEquals"] == {
        "kms:ResourceAliases": f"alias/slipway-local/{MODEL}"
    }
    edit = (isolated[0], f"{isolated[1]}  key_arn: {key}\n")
    (root / "model_configs" / f"{MODEL}.yaml").write_text(config_text(MODEL, edit), "utf-8")
    named = project.plan(MODEL, LOCAL)
    assert least_policy(named, LOCAL, [(None, None)])["Statement"][2] == {
        "Sid": "UseArtifactKey",
        "Effect": "Allow",
        "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
        "Resource": [key],
        "Condition": {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}},
    }


@pytest.mark.size("all")
def test_networks_keys_and_buckets_may_be_looked_at(root: Path, tmp_path: Path) -> None:
    with slipway_stack(tmp_path / "account", time_scale=0.005) as stack:
        clients = stack.stacks.client
        network = make_network(clients("ec2"))
        network.connect_s3()
        key = clients("kms").create_key()["KeyMetadata"]["Arn"]
        clients("s3").create_bucket(Bucket="my-capture")
        parameter = "/slipway/local/security-group-id"
        clients("ssm").put_parameter(Name=parameter, Value=network.group("a"), Type="String")
        timeout = "  container_startup_health_check_timeout_seconds: 600\n"
        more = (
            f"  vpc:\n    subnet_ids: {json.dumps(network.subnet_ids)}\n"
            f"  volume_key_arn: {key}\n"
            "  data_capture:\n    destination: s3://my-capture/\n"
        )
        write_project(root, {MODEL: config_text(MODEL, (timeout, timeout + more))})
        (root / "environments.yaml").write_text(
            ENVIRONMENTS.replace(
                "  artifacts: sample\n",
                f"  artifacts: sample\n  network:\n    vpc_id: {network.vpc_id}\n"
                f"    subnet_ids: {json.dumps(network.subnet_ids)}\n",
            )
        )
        project = Project(root)
        environment = project.environment("local")
        access = access_to(stack.stacks.aws.connection.url)
        recorded = RecordedCalls(access, f"{LOCAL.region}:{LOCAL.account}")
        publish(project, MODEL, environment, access, Progress())
        plan = project.plan(MODEL, environment)
        passed = preflight(plan, access)
        assert find_leftovers(MODEL, environment, access, plan.config) == []
    assert {f"SSM parameter {parameter}", "network of 2 subnets"} <= set(passed)
    assert {f"volume key {key}", "bucket my-capture"} <= set(passed)
    policy = least_policy(plan, environment, [(None, None)])
    assert recorded.denied_by(policy) == set()
    assert ("ListWhatHasNoNarrowerResource", "iam:ListRoles") not in recorded.unused_of(policy)
    looking = {"FindNetwork", "FindVolumeKey", "FindCaptureBucket", "FindFoundation"}
    assert {pair for pair in recorded.unused_of(policy) if pair[0] in looking} == set()
    (found,) = (each for each in policy["Statement"] if each["Sid"] == "FindFoundation")
    assert any(resource.endswith(parameter) for resource in found["Resource"])
