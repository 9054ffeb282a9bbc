"""The real CDK CLI: bootstrap, and a stack that fails.

tests/embedded/lifecycle deploys, compares and destroys with it.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.cloudformation.stack import Stack
from tests.support.accounts import shell_environment
from tests.support.starts import count_start

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
# The virtual environment's bin has node.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

Cdk = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def cdk(aws, tmp_path_factory) -> Cdk:
    directory = tmp_path_factory.mktemp("cdk")
    environment = shell_environment(aws.connection)
    environment |= {"CDK_DISABLE_CLI_TELEMETRY": "true", "HOME": str(directory), "PATH": PATH}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        count_start("cdk")
        return subprocess.run(
            [ROOT / "node_modules/.bin/cdk", *arguments, "--no-notices", "--ci"],
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    done = run("bootstrap", "aws://123456789012/us-east-1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bootstrapped" in done.stdout
    return run


def status(aws) -> str:
    api = LoopbackClients(aws.connection).client("cloudformation", "us-east-1")
    return api.describe_stacks(StackName="failing")["Stacks"][0]["StackStatus"]


def test_bootstrap_again_changes_nothing(cdk):
    again = cdk("bootstrap", "aws://123456789012/us-east-1")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "no changes" in again.stdout + again.stderr


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the stacks for whose end a question waited."""
    names: list[str] = []
    wait = Stack.wait_until_settled

    def record(stack: Stack, seconds: float) -> None:
        names.append(stack.name)
        wait(stack, seconds)

    monkeypatch.setattr(Stack, "wait_until_settled", record)
    return names


def test_a_failing_stack_tells_why(aws, cdk, tmp_path, held):
    """What an engineer reads on the terminal: the resource, and the service's message."""
    template = (
        '{"Resources":{"Alias":{"Type":"AWS::KMS::Alias",'
        '"Properties":{"AliasName":"alias/a","TargetKeyId":"missing"}}}}'
    )
    (tmp_path / "failing.template.json").write_text(template)
    (tmp_path / "manifest.json").write_text(
        """{"version":"48.0.0","artifacts":{"failing":{"type":"aws:cloudformation:stack",
        "environment":"aws://123456789012/us-east-1",
        "properties":{"templateFile":"failing.template.json"}}}}"""
    )
    arguments = ("deploy", "failing", "--app", str(tmp_path), "--require-approval", "never")
    done = cdk(*arguments)
    assert done.returncode == 1
    assert "Invalid keyId missing" in done.stdout + done.stderr
    # The CLI's header says who asks, which no other client's does.
    assert "failing" in held
    assert status(aws) == "ROLLBACK_COMPLETE"

    # The CLI deletes a rolled back stack before it tries again.
    kept = cdk(*arguments, "--no-rollback")
    assert kept.returncode == 1
    assert status(aws) == "CREATE_FAILED"
    # The report of the next try leaves out what was wrong before.
    (tmp_path / "failing.template.json").write_text(template.replace("missing", "absent"))
    again = cdk(*arguments, "--no-rollback")
    assert "Invalid keyId absent" in again.stdout + again.stderr
    assert "Invalid keyId missing" not in again.stdout + again.stderr
    done = cdk("destroy", "failing", "--app", str(tmp_path), "--force")
    assert done.returncode == 0, done.stdout + done.stderr
