import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest

from slipway.embedded_aws import control
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.containers.engine import NoEngineError
from slipway.embedded_aws.errors import LocalAwsError
from slipway.embedded_aws.hosting.fleets.variant import NO_CAPACITY
from slipway.embedded_aws.reported_refusals import ReportedRefusal
from tests.embedded.hosting.conftest import Account, refused
from tests.embedded.hosting.hosted_components import Hosted
from tests.support.processes import is_running
from tests.support.roles import make_role
from tests.support.starts import count_start
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
Running = tuple[Path, control.LocalState]
REFUSE, SCARCE = ReportedRefusal.MIN_INSTANCE_COUNT_0, "ml.m5.xlarge"


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    # pytest's folders keep other users out, which a project's need not.
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        project.chmod(0o755)
        (project / ".slipway" / "local").mkdir(parents=True)
        # Of an interrupted start.
        (project / ".slipway" / "local" / "state.partial").touch(0o644)
        count_start("embedded-aws")
        yield project, control.start(project, 0, refuse=[REFUSE], without_capacity=[SCARCE])
        control.stop(project)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"containers": True},
            "and its endpoints run as processes. Run `slipway local stop`, then start it with "
            "`--containers`. What is deployed and published there is lost.",
        ),
        (
            {"refuse": list(ReportedRefusal)},
            "without `--refuse copy-count-0`. Run `slipway local stop`, then start it with the "
            "option. What is deployed and published there is lost.",
        ),
        (
            {"without_capacity": ["ml.m5.large", SCARCE]},
            "without `--without-capacity ml.m5.large`. Run `slipway local stop`, then start it "
            "with the option. What is deployed and published there is lost.",
        ),
    ],
)
def test_a_start_with_more_options_does_not_find_one_without(
    running: Running, options: dict[str, Any], message: str
) -> None:
    project, state = running
    with pytest.raises(LocalAwsError) as caught:
        control.start(project, **options)
    assert str(caught.value) == (f"The embedded AWS runs already (process {state.pid}), {message}")


def test_the_options_reach_the_server(running: Running) -> None:
    project, state = running
    assert (state.engine, state.refused, state.without_capacity) == (None, (REFUSE,), (SCARCE,))
    assert control.start(project, refuse=[REFUSE], without_capacity=[SCARCE]) == state
    account = Account(LoopbackClients(state.connection), project)
    make_role(account.client("iam"), "hosting")
    assert refused(Hosted(account).config) == (
        "Min instance count needs to be greater than 0 for enabled managed instance scaling"
    )
    model = account.model(Image=account.image.replace("tests/stand-in", "slipway/tensorrt"))
    assert account.failure(account.variant(model, InstanceType=SCARCE)) == NO_CAPACITY
    (endpoint,) = account.sagemaker.list_endpoints()["Endpoints"]
    account.delete(endpoint["EndpointName"])
    account.clients.close()


def test_minutes_pass_in_the_account(running: Running) -> None:
    project, _ = running
    assert control.status(project).ahead_seconds == 0
    first, second = control.pass_minute(project), control.pass_minute(project)
    # The rest of the present minute, and a whole one.
    assert 0 < first.ahead_seconds <= 61
    assert 59 < second.ahead_seconds - first.ahead_seconds <= 61
    assert abs((second.now - datetime.now(UTC)).total_seconds() - second.ahead_seconds) < 5
    assert control.status(project).ahead_seconds == second.ahead_seconds


def test_containers_need_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPWAY_CONTAINER_ENGINE", "docker")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoEngineError) as caught:
        control.start(tmp_path, 0, containers=True)
    assert str(caught.value) == (
        "There is no container engine here:\n- docker: it is not on the PATH."
    )
    assert control.status(tmp_path) is None


def test_status(running: Running) -> None:
    project, state = running
    described = control.status(project)
    assert described.state == state
    assert state.url == f"http://localhost:{state.port}"
    assert described.endpoints == ()
    assert 0 <= described.uptime_seconds < 60
    assert "listening at" in described.log_file.read_text()


def test_two_processes_cannot_share_a_directory(running: Running) -> None:
    project, state = running
    command = [sys.executable, "-m", "slipway.embedded_aws", "--port", "0", "--directory"]
    second = subprocess.run(
        [*command, project / ".slipway" / "local"], cwd=ROOT, capture_output=True, text=True
    )
    assert second.returncode == 1
    assert second.stderr.startswith("Another embedded AWS uses ")
    assert control.start(project) == state


def test_boto3_follows_the_environment(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    for name, value in control.environment(running[1]).items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    client = boto3.Session().client("sts")
    assert client.get_caller_identity()["Account"] == "123456789012"
    client.close()


def test_nothing_outlives_a_stop_or_a_kill(tmp_path: Path) -> None:
    assert control.status(tmp_path) is None
    assert control.pass_minute(tmp_path) is None
    assert control.stop(tmp_path) is False
    first = control.start(tmp_path, 0)
    clients = LoopbackClients(first.connection)
    clients.client("s3", "us-east-1").create_bucket(Bucket="kept-in-memory")
    clients.close()
    os.kill(first.pid, signal.SIGKILL)
    eventually(lambda: control.status(tmp_path) is None)
    # The file of the killed one is stale, even when its process id lives on in another program.
    state_file = tmp_path / ".slipway" / "local" / "state.json"
    stale = json.loads(state_file.read_text())
    state_file.write_text(json.dumps(stale | {"pid": os.getpid()}))
    assert control.status(tmp_path) is None
    second = control.start(tmp_path, 0)
    assert second.pid not in (first.pid, os.getpid())
    assert second.secret_access_key != first.secret_access_key
    clients = LoopbackClients(second.connection)
    assert clients.client("s3", "us-east-1").list_buckets()["Buckets"] == []
    clients.close()
    assert control.stop(tmp_path) is True
    eventually(lambda: not is_running(second.pid))
    assert control.status(tmp_path) is None
    assert control.stop(tmp_path) is False


def test_taken_port_is_the_users_problem(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalAwsError) as caught:
            control.start(tmp_path, port)
    assert str(caught.value) == (
        f"Port {port} cannot be used: Address already in use. Stop the program that has it, or "
        f"choose another port: `slipway local start --port {port + 1}`."
    )
    assert control.status(tmp_path) is None


def test_environment_points_everything_at_it_and_nothing_elsewhere() -> None:
    state = control.LocalState(
        1, 4566, "http://localhost:4566", datetime(2026, 1, 1, tzinfo=UTC), "made at the start"
    )
    theirs = {
        "AWS_PROFILE": "production",
        "AWS_SESSION_TOKEN": "t",
        "AWS_ENDPOINT_URL_S3": "https://elsewhere",
        "AWS_ROLE_ARN": "arn:aws:iam::1:role/admin",
        "AWS_REGION": "eu-central-1",
        "HTTPS_PROXY": "http://proxy:3128",
        "NO_PROXY": "intranet",
        "HOME": "/home/them",
    }
    assert control.environment(state, environ=theirs) == {
        "AWS_ENDPOINT_URL": "http://localhost:4566",
        "S3_ENDPOINT_URL": "http://localhost:4566",
        "AWS_ACCESS_KEY_ID": "embedded-aws",
        "AWS_SECRET_ACCESS_KEY": "made at the start",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_PROFILE": None,
        "AWS_DEFAULT_PROFILE": None,
        "AWS_SESSION_TOKEN": None,
        "AWS_SECURITY_TOKEN": None,
        "AWS_ENDPOINT_URL_S3": None,
        "AWS_ROLE_ARN": None,
        "NO_PROXY": "intranet,localhost,127.0.0.1",
        "no_proxy": "localhost,127.0.0.1",
    }


def test_the_key_is_the_owners_alone(running: Running) -> None:
    project, state = running
    folder = project / ".slipway" / "local"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "state.json").stat().st_mode) == 0o600
    assert len(state.secret_access_key) == 40
    assert state.secret_access_key not in repr(state)
    # It is an argument of no process, and in no log.
    assert state.secret_access_key not in (folder / "server.log").read_text()
    assert state.secret_access_key.encode() not in Path(f"/proc/{state.pid}/cmdline").read_bytes()


STRANGER = """
    import json, os, sys, urllib.error, urllib.request
    import boto3
    file, url, project = sys.argv[1:]
    codebuild = boto3.client("codebuild", endpoint_url=url, region_name="us-east-1",
        aws_access_key_id="embedded-aws", aws_secret_access_key="embedded-aws")

    def find():
        found = {"user": os.geteuid(), "project": os.listdir(project)}
        try:
            found["secret"] = open(file).read()
        except OSError as error:
            found["secret"] = type(error).__name__
        try:
            found["codebuild"] = codebuild.list_builds()
        except Exception as error:
            found["codebuild"] = error.response["Error"]["Code"]
        for path in ("/_slipway/status", "/moto-api/data.json"):
            try:
                found[path] = urllib.request.urlopen(url + path).status
            except urllib.error.HTTPError as error:
                found[path] = error.code
        return found

    # Imports all that the other user may not read of this Python.
    find()
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    print(json.dumps(find()))
"""


@pytest.mark.root
def test_another_user_of_this_machine_gets_in_nowhere(running: Running) -> None:
    project, state = running
    file = project / ".slipway" / "local" / "state.json"
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(STRANGER), str(file), state.url, str(project)],
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {
        "user": 65534,
        "project": [".slipway"],
        "secret": "PermissionError",
        "codebuild": "InvalidSignatureException",
        "/_slipway/status": 403,
        "/moto-api/data.json": 403,
    }
