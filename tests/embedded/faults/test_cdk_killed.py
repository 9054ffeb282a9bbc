"""The CDK CLI killed in the middle of a deployment, or left without the AWS it works with.

CloudFormation goes on with what it has begun, and the next run works.

The points are seen through CloudFormation's own API. A frozen container (SIGSTOP) keeps an endpoint
in creation, and so a stack in progress, for as long as a test needs.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.assemblies import changed_copy, deploy_command, destroy_command
from tests.support.processes import command_line, is_forgotten, kill_tree, session
from tests.support.waiting import eventually
from tests.support.workbench import MODEL, SHIPPED, Workbench

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(300)]

STACK = ENDPOINT = f"{MODEL}-local"
FIRST, SECOND = SHIPPED, "cdk.out.second"
NO_LEFTOVERS = f"Nothing is left of {MODEL} in local: "


class Deployments:
    """One model's stack, deployed from assemblies that were made before: only the CLI's part is
    killed here, time and again, and synthesis would be most of the time."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.cloudformation = bench.client("cloudformation")
        self.begun: subprocess.Popen[str] | None = None

    def begin(self, *command: str) -> subprocess.Popen[str]:
        self.begun = self.bench.popen(*command)
        return self.begun

    def begin_deploy(self, assembly: str) -> subprocess.Popen[str]:
        return self.begin(*deploy_command(assembly, MODEL))

    def check_refused(self, assembly: str, status: str) -> None:
        """The CLI does not wait for somebody else's operation: it says what is going on."""
        assert self.status() == status
        report = self.bench.fails(*deploy_command(assembly, MODEL))
        assert f"is in {status} state and can not be updated." in report

    def check_deployed(self, assembly: str, status: str) -> None:
        """Waits until the stack has the status; the next deployment changes nothing."""
        eventually(lambda: self.status() == status)
        assert "(no changes)" in self.bench.deploy_from(assembly, MODEL)
        assert self.answer()

    def destroy(self, assembly: str) -> None:
        self.bench.must(*destroy_command(assembly, MODEL))
        assert self.status() is None
        assert self.bench.must("slipway", "leftovers", MODEL).startswith(NO_LEFTOVERS)
        assert self.bench.serving_processes() == []

    def status(self) -> str | None:
        stacks = self.cloudformation.describe_stacks()["Stacks"]
        return next((item["StackStatus"] for item in stacks if item["StackName"] == STACK), None)

    def has_unexecuted_change_set(self) -> bool:
        if self.status() is None:
            return False
        listed = self.cloudformation.list_change_sets(StackName=STACK)["Summaries"]
        return [item["ExecutionStatus"] for item in listed] == ["AVAILABLE"]

    def freeze_new_container(self, known: list[int]) -> int:
        process: int = eventually(
            lambda: next((p for p in self.bench.serving_processes() if p not in known), 0)
        )
        os.kill(process, signal.SIGSTOP)
        return process

    def answer(self) -> str:
        (answer,) = self.bench.ask(ENDPOINT, {"inputs": "The Amazon Resource Name (ARN)"})
        return answer["generated_text"]

    def end(self) -> None:
        """Leaves nothing of a test to the next one, also where it failed."""
        if self.begun is not None:
            kill_tree(self.begun)
        for process in self.bench.serving_processes():
            os.kill(process, signal.SIGCONT)
        eventually(lambda: not self._is_busy())
        self.cloudformation.delete_stack(StackName=STACK)
        eventually(lambda: self.status() is None)

    def _is_busy(self) -> bool:
        status = self.status() or ""
        return status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"


@pytest.fixture(scope="module")
def bench(account: Workbench) -> Workbench:
    """The account, and the model in a second version, which needs another container."""
    size = '"SLIPWAY_MAX_BATCH_SIZE": '
    changed_copy(
        account.project / FIRST, account.project / SECOND, MODEL, f'{size}"40"', f'{size}"4"'
    )
    return account


@pytest.fixture(scope="module")
def diff_without_an_aws(bench: Workbench) -> Iterator[subprocess.Popen[str]]:
    """`cdk diff` with nothing on the embedded AWS's port: begun first, for it tries for long."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://localhost:{taken.getsockname()[1]}"
    environment = bench.environment
    bench.environment = environment | {"AWS_ENDPOINT_URL": url, "S3_ENDPOINT_URL": url}
    process = bench.popen("cdk", "diff", MODEL, "--app", FIRST, "--method=template")
    bench.environment = environment
    yield process
    kill_tree(process)


@pytest.fixture
def deployments(
    bench: Workbench, diff_without_an_aws: subprocess.Popen[str]
) -> Iterator[Deployments]:
    deployments = Deployments(bench)
    yield deployments
    deployments.end()


def test_during_synthesis_then_before_and_during_an_update(deployments):
    command = (
        *("cdk", "deploy", MODEL, "-c", f"models={MODEL}", "--output", "cdk.out.killed"),
        *("--require-approval", "never"),
    )
    process = deployments.begin(*command)

    def is_synthesizing() -> bool:
        # The app, and the Node process in which the constructs live.
        lines = [" ".join(command_line(pid)) for pid in session(process.pid)]
        return any("app.py" in line for line in lines) and any("jsii" in line for line in lines)

    eventually(is_synthesizing)
    kill_tree(process)
    # The folder is locked by a process id: the CLI takes one that nobody waited for as alive.
    eventually(lambda: is_forgotten(process.pid))
    assert deployments.status() is None
    # The same folder: what the killed one left there is in nobody's way.
    deployments.bench.must(*command)
    assert deployments.status() == "CREATE_COMPLETE"
    assert deployments.answer()
    served_by = deployments.bench.serving_processes()

    process = deployments.begin_deploy(SECOND)
    eventually(deployments.has_unexecuted_change_set)
    kill_tree(process)
    assert deployments.status() == "CREATE_COMPLETE"
    assert deployments.answer()

    process = deployments.begin_deploy(SECOND)
    container = deployments.freeze_new_container(served_by)
    kill_tree(process)
    deployments.check_refused(SECOND, "UPDATE_IN_PROGRESS")
    assert deployments.answer()
    report = deployments.bench.fails(*destroy_command(SECOND, MODEL))
    assert "is in UPDATE_IN_PROGRESS state and can not be deleted." in report
    os.kill(container, signal.SIGCONT)
    deployments.check_deployed(SECOND, "UPDATE_COMPLETE")
    assert deployments.bench.serving_processes() == [container]
    deployments.destroy(SECOND)


def kill_before_the_first_change_set_is_executed(deployments: Deployments) -> None:
    process = deployments.begin_deploy(FIRST)
    eventually(deployments.has_unexecuted_change_set)
    kill_tree(process)
    assert deployments.status() == "REVIEW_IN_PROGRESS"


def test_before_the_first_change_set_is_executed_then_destroyed(deployments):
    kill_before_the_first_change_set_is_executed(deployments)
    deployments.destroy(FIRST)


def test_a_creation_goes_on(deployments):
    kill_before_the_first_change_set_is_executed(deployments)
    assert deployments.bench.must("slipway", "leftovers", MODEL).startswith(NO_LEFTOVERS)
    process = deployments.begin_deploy(FIRST)
    container = deployments.freeze_new_container([])
    kill_tree(process)
    deployments.check_refused(FIRST, "CREATE_IN_PROGRESS")
    os.kill(container, signal.SIGCONT)
    deployments.check_deployed(FIRST, "CREATE_COMPLETE")


def test_a_creation_in_progress_is_destroyed(deployments):
    process = deployments.begin_deploy(FIRST)
    container = deployments.freeze_new_container([])
    kill_tree(process)
    destroying = deployments.begin(*destroy_command(FIRST, MODEL))
    eventually(lambda: deployments.status() == "DELETE_IN_PROGRESS")
    # SageMaker deletes no endpoint that it is still creating: so the deletion waits for it.
    os.kill(container, signal.SIGCONT)
    output, _ = destroying.communicate(timeout=120)
    assert destroying.returncode == 0, output
    assert deployments.status() is None
    assert deployments.bench.must("slipway", "leftovers", MODEL).startswith(NO_LEFTOVERS)
    assert deployments.bench.serving_processes() == []


def test_an_account_that_is_stopped(diff_without_an_aws):
    """The words are the CLI's own: `connect ECONNREFUSED` and the port, after almost a minute."""
    output, _ = diff_without_an_aws.communicate(timeout=180)
    assert diff_without_an_aws.returncode != 0, output
    assert "Number of stacks with differences" not in output
