"""The embedded AWS stopped or killed: nothing it started outlives it, and the user is told."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws import control
from tests.support.command_line import Run
from tests.support.processes import children, is_running
from tests.support.served_sample import BUCKET, ENDPOINT, STACK, await_serving, deploy
from tests.support.waiting import eventually
from tests.support.workbench import MODEL, Workbench

pytestmark = [pytest.mark.size("all"), pytest.mark.timeout(300)]

Said = Callable[..., tuple[int, str]]
GONE = "what was deployed and published there is gone"
NOT_RUNNING = "The embedded AWS is not running. Start it with `slipway local start`.\n"
REFUSED = (
    "1 problem\n- the embedded AWS is not running [SW504]\n"
    "    Start it with `slipway local start`.\n"
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with Workbench(tmp_path_factory.mktemp("project")) as bench:
        yield bench


@pytest.fixture
def bench(project: Workbench, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """The embedded AWS of all tests here, which runs with an empty account."""
    monkeypatch.chdir(project.project)
    project.start()
    if project.client("s3").list_buckets()["Buckets"]:
        control.stop(project.project)
        project.start()
    return project


@pytest.fixture
def said(bench: Workbench, slipway_command: Run) -> Said:
    """Runs a command in the project; returns its exit code and all that it prints."""

    def said(*arguments: str) -> tuple[int, str]:
        code, output, errors = slipway_command(*arguments)
        return code, output + errors

    return said


def await_starting(bench: Workbench) -> None:
    """Returns while a container is being started and does not serve yet."""
    (container,) = eventually(bench.serving_processes)
    os.kill(container, signal.SIGSTOP)
    described = bench.client("sagemaker").describe_endpoint(EndpointName=ENDPOINT)
    assert described["EndpointStatus"] == "Creating"
    assert bench.stack_status(STACK) == "CREATE_IN_PROGRESS"
    os.kill(container, signal.SIGCONT)


def kill(bench: Workbench) -> str:
    """Kills the embedded AWS; returns how the next command tells of it."""
    killed = bench.state.pid
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: not is_running(killed))
    return f"Process {killed} of the embedded AWS ended without `slipway local stop`; {GONE}.\n"


def left_running(bench: Workbench) -> list[str]:
    """What lives with a model directory of this account: containers and their supervisors."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environ = (folder / "environ").read_bytes()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it ended, or it is somebody else's
        if f"SM_MODEL_DIR={bench.project}".encode() in environ:
            found.append(command.replace(b"\0", b" ").decode())
    return found


def local_folder(bench: Workbench) -> Path:
    return bench.project / ".slipway" / "local"


def assert_empty_account(bench: Workbench) -> None:
    assert bench.client("s3").list_buckets()["Buckets"] == []
    assert bench.client("sagemaker").list_endpoints()["Endpoints"] == []
    assert bench.client("cloudformation").describe_stacks()["Stacks"] == []
    # Nor does anything of an earlier account lie about.
    files = {path for path in local_folder(bench).rglob("*") if not path.is_dir()}
    assert {path.name for path in files} == {"lock", "server.log", "state.json"}
    assert list(local_folder(bench).glob("instances/*")) == []


def started(bench: Workbench) -> str:
    """What a start of a new embedded AWS says at its end."""
    bench.start()
    return (
        f"The embedded AWS answers at {bench.state.url} (process {bench.state.pid}).\n"
        "Its account is empty: `cdk bootstrap`, `cdk deploy foundation` and `slipway publish` come "
        "first.\n"
        'Point this shell at it: eval "$(slipway local env)"\n'
    )


def check_the_loss(bench: Workbench, said: Said) -> None:
    """Kills what runs; its containers end, and each command tells of it until the next start."""
    assert left_running(bench)
    killed = bench.state.pid
    loss = kill(bench)
    eventually(lambda: left_running(bench) == [])
    assert said("local", "status") == (3, loss + NOT_RUNNING)
    code, status = said("local", "status", "--json")
    assert (code, json.loads(status)) == (3, {"running": False, "endpoints": []})
    assert said("publish", MODEL) == (1, REFUSED)

    code, output = said("local", "start", "--port", "0")
    assert (code, output) == (0, loss + started(bench))
    assert bench.state.pid != killed
    assert_empty_account(bench)
    # Told once: the next start and stop know of nothing that was lost.
    assert loss not in said("local", "start")[1]


def test_killed_and_then_stopped_while_it_serves(bench, said):
    deploy(bench)
    await_serving(bench)
    check_the_loss(bench, said)
    deploy(bench)
    await_serving(bench)
    assert said("local", "start") == (
        0,
        f"The embedded AWS answers at {bench.state.url} (process {bench.state.pid}).\n"
        "It was running already, and keeps what it has.\n"
        'Point this shell at it: eval "$(slipway local env)"\n',
    )
    port = bench.state.port
    code, output = said("local", "start", "--port", str(port))
    assert code == 0
    assert output.endswith('env)"\n')
    assert said("local", "start", "--port", str(port - 1)) == (
        3,
        "1 problem\n"
        f"- the embedded AWS of this project is running on port {port}, not on {port - 1} "
        "[SW427]\n"
        "    Use it there, or run `slipway local stop` and `slipway local start --port "
        f"{port - 1}`; {GONE} then.\n",
    )

    stopped = f"Stopped; {GONE}. The next start begins with an empty account.\n"
    assert said("local", "stop") == (0, stopped)
    assert left_running(bench) == []
    assert said("local", "status") == (3, NOT_RUNNING)
    assert said("local", "stop") == (0, "It was not running.\n")
    assert said("publish", MODEL) == (1, REFUSED)

    assert said("local", "start", "--port", "0") == (0, started(bench))
    assert_empty_account(bench)
    # The lock outlives the account: publishing fills the new one, and changes nothing in git.
    bench.client("s3").create_bucket(Bucket=BUCKET)
    published = json.loads(said("publish", MODEL, "--json")[1])
    assert published["uploaded_bytes"] == published["size_bytes"]
    assert published["lock_changed"] is False


def test_stopped_and_killed_during_the_creation_of_a_stack(bench, said):
    deploy(bench)
    await_starting(bench)
    assert bench.must("slipway", "local", "stop").startswith("Stopped; ")
    assert left_running(bench) == []
    assert said("local", "status") == (3, NOT_RUNNING)
    assert not (local_folder(bench) / "state.json").exists()
    bench.start()
    assert_empty_account(bench)
    deploy(bench)
    await_starting(bench)
    check_the_loss(bench, said)


def test_stop_tells_of_the_loss_too(bench, said):
    loss = kill(bench)
    assert said("local", "stop") == (0, f"It was not running.\n{loss}")
    assert said("local", "status") == (3, NOT_RUNNING)
    started_anew = json.loads(bench.must("slipway", "local", "start", "--port", "0", "--json"))
    bench.start()
    assert started_anew == {
        "pid": bench.state.pid, "url": bench.state.url, "engine": None, "refused": [],
        "without_capacity": [],
        "recorded": [],
        "is_new": True,
    }  # fmt: skip
    assert json.loads(said("local", "start", "--json")[1])["is_new"] is False


def test_killed_before_it_answers(bench):
    kill(bench)
    starting = bench.popen("slipway", "local", "start", "--port", "0")
    (server,) = eventually(lambda: children(starting.pid))
    # It first removes what the killed one said of itself.
    eventually(lambda: not (local_folder(bench) / "state.json").exists())
    os.kill(server, signal.SIGSTOP)
    assert (local_folder(bench) / "lock").read_text() == str(server)
    found: list[Any] = []
    looking = threading.Thread(target=lambda: found.append(control.status(bench.project)))
    looking.start()
    eventually(lambda: is_waiting_for_a_start(looking))
    os.kill(server, signal.SIGKILL)
    looking.join(10)
    assert found == [None]
    output, _ = starting.communicate(timeout=60)
    assert starting.returncode == 1
    assert "The embedded AWS ended at its start. Its log, " in output
    assert "Traceback" not in output
    bench.start()
    assert_empty_account(bench)


def test_what_a_lost_machine_leaves_is_cleared_away(bench, said):
    kill(bench)
    folder = local_folder(bench)
    model = folder / "instances" / "i-0" / "model"
    model.mkdir(parents=True)
    (model / "weights").write_bytes(b"w")
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs" / "AllTraffic-i-0.log").write_text("line\n")
    # Written, and not on the disk yet.
    (folder / "state.json").write_text("")
    assert said("local", "status") == (3, NOT_RUNNING)
    bench.start()
    assert_empty_account(bench)


def is_waiting_for_a_start(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code is control._await_state.__code__:
            return True
        frame = frame.f_back
    return False
