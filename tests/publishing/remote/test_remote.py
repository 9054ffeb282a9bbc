"""`slipway publish NAME --remote`: a build publishes, and the lock is written here."""

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.image_sources import image_files
from slipway.project import Project
from slipway.publishing.publish import make, publish
from tests.embedded.training.publishing import Said
from tests.publishing.remote.conftest import ENVIRONMENTS, PROJECT, Remote
from tests.support.command_line import Run
from tests.support.pages import ROOT
from tests.support.recorded_calls import RecordedCalls
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")


@pytest.fixture
def gate(remote: Remote) -> Iterator[Path]:
    """A file that the model's training job waits for."""
    gate = remote.root / "gate"
    remote.put_weights(f"gate {gate}")
    yield gate
    gate.touch()
    eventually(lambda: all(build["buildStatus"] != "IN_PROGRESS" for build in remote.builds()))


@pytest.fixture
def command(remote: Remote, monkeypatch: pytest.MonkeyPatch, slipway_command: Run) -> Run:
    monkeypatch.chdir(remote.root)
    monkeypatch.setattr("slipway.access.open_access", lambda *_: remote.access)
    return slipway_command


def refused(remote: Remote) -> list[Any]:
    with pytest.raises(UserError) as caught:
        remote.publish()
    return list(caught.value.problems)


def test_a_build_publishes_and_the_lock_is_that_of_a_publish_here(
    remote: Remote, command: Run
) -> None:
    calls = RecordedCalls(remote.access, "us-east-1:123456789012")
    code, output, errors = command("publish", "tiny", "--remote", "--json")
    assert code == 0, errors
    _, policy, _ = command("iam", "tiny", "--remote")
    assert calls.denied_by(json.loads(policy)) == set()
    own = {"SendSource", "TakeResult", "PublishInABuild", "ReadBuildLog"}
    unused = {pair for pair in calls.unused_of(json.loads(policy)) if pair[0] in own}
    assert unused == {("PublishInABuild", "codebuild:StopBuild")}
    told = json.loads(output)
    (build,) = remote.builds()
    assert told["build"] == build["id"]
    assert told["lock_changed"] is True
    assert told["uploaded_bytes"] > 0
    lines = errors.splitlines()
    assert lines[0] == (
        "A build of compute type medium takes at most 60 minutes. It runs on this machine and "
        "costs nothing."
    )
    assert lines[1] == f"The build {build['id']} began."
    assert any(line.startswith("The training job compile-tiny-") for line in lines)
    lock = remote.lock.read_bytes()
    remote.lock.unlink()
    here = publish(Project(remote.root), "tiny", remote.environment, remote.access, Said())
    assert remote.lock.read_bytes() == lock
    assert (here.digest, here.weights_digest) == (told["digest"], told["weights_digest"])
    # Nothing of the weights was sent, and nothing of a log-in.
    place = build["source"]["location"].partition("/")
    archive = remote.stacks.client("s3").get_object(Bucket=place[0], Key=place[2])["Body"].read()
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        names = sorted(source.namelist())
    assert [name for name in names if name.startswith("project/")] == [
        *(f"project/{name}" for name in image_files(remote.root, "tensorrt")),
        "project/environments.yaml",
        "project/model_configs/tiny.yaml",
    ]
    assert [name for name in names if "/" not in name] == [
        *("SHA256SUMS", "requirements.txt", "slipway-0.1.0-py3-none-any.whl"),
    ]


def test_the_same_command_joins_the_build_that_runs(remote: Remote, gate: Path) -> None:
    notes = remote.leave()
    (build,) = remote.builds()
    assert notes[-1] == (
        f"The build {build['id']} goes on. Run the same command to join it; "
        "`slipway publish tiny --env local --remote --cancel` stops it."
    )
    # Another machine knows only what CodeBuild says.
    (remote.root / ".slipway" / "remote" / "tiny-local.json").unlink()
    assert remote.leave()[0] == f"The build {build['id']} does the same: joined."
    gate.touch()
    assert remote.publish().build == build["id"]
    assert len(remote.builds()) == 1
    assert remote.lock.exists()


def test_the_result_of_a_build_that_was_left_is_taken_later(remote: Remote) -> None:
    # An LMI model: s5cmd sends its package from the build, with a handler of the user's own.
    model = "lmi-own-script"
    remote.leave(model)
    (build,) = remote.builds()
    eventually(lambda: remote.builds()[0]["buildStatus"] == "SUCCEEDED")
    said = Said()
    assert remote.publish(said, model).build == build["id"]
    assert said.notes[0] == f"The build {build['id']} was started here before: joined."
    # What was taken is not taken again: the weights may have changed since.
    assert list((remote.root / ".slipway" / "remote").iterdir()) == []
    lock = remote.root / "model_configs" / f"{model}.lock.json"
    written = lock.read_bytes()
    lock.unlink()
    publish(Project(remote.root), model, remote.environment, remote.access, Said())
    assert lock.read_bytes() == written


def test_a_build_is_cancelled_and_the_next_run_starts_another(
    remote: Remote, gate: Path, command: Run
) -> None:
    remote.leave()
    (build,) = remote.builds()
    code, output, _ = command("publish", "tiny", "--remote", "--cancel")
    assert code == 0
    assert output == (f"Stopped the build {build['id']}. A training job that it started goes on.\n")
    assert remote.builds()[0]["buildStatus"] == "STOPPED"
    assert not remote.lock.exists()
    code, output, _ = command("publish", "tiny", "--remote", "--cancel", "--json")
    assert (code, json.loads(output)["problems"][0]["code"]) == (1, "SW654")
    remote.leave()
    assert [each["buildStatus"] for each in remote.builds()] == ["IN_PROGRESS", "STOPPED"]
    command("publish", "tiny", "--remote", "--cancel")


def test_somebody_else_stops_the_build(remote: Remote, gate: Path) -> None:
    class Stopping(Said):
        def job(self, name: str, state: str, elapsed_seconds: float) -> None:
            remote.codebuild.stop_build(id=name)

    with pytest.raises(UserError) as caught:
        remote.publish(Stopping())
    (problem,) = caught.value.problems
    assert problem.code is Code.BUILD_STOPPED
    assert "was stopped by somebody" in problem.message


def test_the_problems_of_the_build_are_the_problems_of_the_command(remote: Remote) -> None:
    remote.put_weights("fail")
    (problem,) = refused(remote)
    assert problem.code is Code.JOB_FAILED
    assert "config.json has model_type bert: only gpt2 is compiled" in problem.message
    assert problem.location.path == "model_configs/tiny.yaml"
    assert problem.field == ("artifacts", "compile")
    assert remote.builds()[0]["buildStatus"] == "FAILED"
    assert not remote.lock.exists()


def test_a_build_that_cannot_report_is_told_with_the_end_of_its_log(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if somebody had replaced a file of the source after it was sent.
    monkeypatch.setattr("slipway.publishing.remote.source._REQUIREMENTS", ROOT / "pyproject.toml")
    (problem,) = refused(remote)
    assert problem.code is Code.BUILD_FAILED
    assert "Reason: exit status 1; the end of its log:" in problem.message
    assert "requirements.txt" in problem.message
    build = remote.builds()[0]
    assert problem.remedy.endswith(f"stream {build['logs']['streamName']}")


def test_a_role_without_its_rights_fails_the_build(remote: Remote) -> None:
    iam = remote.stacks.client("iam")
    (found,) = remote.codebuild.batch_get_projects(names=[PROJECT])["projects"]
    role = found["serviceRole"].rpartition("/")[2]
    policy = iam.get_role_policy(RoleName=role, PolicyName="Publishing")["PolicyDocument"]
    less = [each for each in policy["Statement"] if each["Sid"] != "ReadSource"]
    iam.put_role_policy(
        RoleName=role,
        PolicyName="Publishing",
        PolicyDocument=json.dumps({**policy, "Statement": less}),
    )
    try:
        (problem,) = refused(remote)
    finally:
        iam.put_role_policy(
            RoleName=role, PolicyName="Publishing", PolicyDocument=json.dumps(policy)
        )
    assert problem.code is Code.BUILD_FAILED
    assert "not authorized to perform: s3:GetObject" in problem.message


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("codebuild.StartBuild", Code.BUILD_NOT_STARTED),
        ("cloudwatch-logs.GetLogEvents", Code.BUILD_UNREACHABLE),
    ],
)
def test_a_caller_without_a_right_is_told_which(remote: Remote, operation: str, code: Code) -> None:
    def deny(request: Any, **_: Any) -> AWSResponse:
        answer = AWSResponse(request.url, 400, {}, io.BytesIO())
        answer._content = b'{"__type": "AccessDeniedException", "message": "not authorized"}'
        return answer

    # As IAM denies it: the embedded AWS denies a caller nothing.
    remote.access._session.events.register(f"before-send.{operation}", deny)
    (problem,) = refused(remote)
    assert problem.code is code
    name = operation.rpartition(".")[2]
    assert problem.message == f"the account refuses {name}: AccessDeniedException: not authorized"
    assert "`slipway iam NAME --remote` prints the rights." in problem.remedy
    started = remote.builds()
    assert len(started) == (code is Code.BUILD_UNREACHABLE)
    for build in started:
        remote.codebuild.stop_build(id=build["id"])


def test_a_build_that_takes_too_long(
    remote: Remote, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The hour of the project is over after some seconds, which the job does not end in.
    builds = remote.stacks.aws._builds
    monkeypatch.setattr(builds, "_context", replace(builds._context, time_scale=0.001))
    (problem,) = refused(remote)
    assert problem.code is Code.BUILD_TIMED_OUT
    assert "was stopped at its time limit of 60 minutes" in problem.message


def test_without_foundation_or_project_nothing_is_sent(remote: Remote, command: Run) -> None:
    staging = ENVIRONMENTS.replace("local:", "staging:")
    (remote.root / "environments.yaml").write_text(ENVIRONMENTS + staging, "utf-8")
    code, _, errors = command("publish", "tiny", "--env", "staging", "--remote")
    assert code == 1
    assert "the artifact bucket slipway-staging-123456789012-us-east-1 is not there" in errors
    assert "Run `cdk deploy foundation -c env=staging` first." in errors
    # An older foundation has the bucket and no project.
    bucket = "slipway-staging-123456789012-us-east-1"
    remote.stacks.client("s3").create_bucket(Bucket=bucket)
    code, _, errors = command("publish", "tiny", "--env", "staging", "--remote")
    assert code == 1
    assert (
        "the foundation of `staging` has no build project slipway-staging-publish [SW516]\n"
        "    Run `cdk deploy foundation -c env=staging` first." in errors
    )
    assert "Contents" not in remote.stacks.client("s3").list_objects_v2(Bucket=bucket)


def test_the_rights_of_the_build_are_what_publishing_needs(remote: Remote) -> None:
    calls = RecordedCalls(remote.access, "us-east-1:123456789012")
    # What the build does, here, where the calls can be recorded.
    make(Project(remote.root), "tiny", remote.environment, remote.access, Said())
    (found,) = remote.codebuild.batch_get_projects(names=[PROJECT])["projects"]
    policy = remote.stacks.client("iam").get_role_policy(
        RoleName=found["serviceRole"].rpartition("/")[2], PolicyName="Publishing"
    )["PolicyDocument"]
    allowed = {
        "Statement": [
            {**each, "Action": _listed(each["Action"]), "Resource": _listed(each["Resource"])}
            for each in policy["Statement"]
        ]
    }
    # The recorder does not know the id of the key.
    assert {call for call in calls.denied_by(allowed) if not call[0].startswith("kms:")} == set()
    assert {pair for pair in calls.unused_of(allowed) if pair[0] not in _NOT_HERE} == set()


# CodeBuild's own calls, those of a failed job, those of a real account, and the result's.
_NOT_HERE = {
    *("ReadSource", "WriteResult", "WriteLogs", "ReadCompileLog", "FindCompiler"),
    *("UseArtifactKey", "FindArtifacts"),
}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
