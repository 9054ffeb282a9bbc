"""Runs the commands of a page as a reader copies them, one block after the other in one shell."""

import os
import socket
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.embedded_aws import control
from slipway.embedded_aws.clients import LoopbackClients
from slipway.project import Project
from tests.support.pages import blocks
from tests.support.prepared_accounts import bootstrap, deploy_foundation
from tests.support.processes import kill_tree
from tests.support.starts import count_start

END = "the block ended"
# How a page prepares the account.
PREPARATION = "cdk bootstrap\ncdk deploy foundation --require-approval never\n"


class Shell:
    def __init__(
        self, project: Path, programs: Sequence[Path] = (Path(sys.executable).parent,)
    ) -> None:
        path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
        self.process = subprocess.Popen(
            ["bash", "-euo", "pipefail"],
            cwd=project,
            # Only the port is another one: other tests run on this machine too.
            env={**os.environ, "PATH": path, "SLIPWAY_LOCAL_PORT": str(free_port())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, commands: str) -> str:
        """Runs a block, and returns what it printed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{commands}\necho '{END}'\n")
        self.process.stdin.flush()
        printed = ""
        for line in self.process.stdout:
            # What a program printed last may lack its line's end.
            if line.endswith(f"{END}\n"):
                return printed + line.removesuffix(f"{END}\n")
            printed += line
        raise AssertionError(f"{commands}\n{printed}")

    def end(self) -> None:
        kill_tree(self.process)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def without_indent(text: str) -> str:
    """Returns the lines without their indentation, and without empty lines around them."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def prepare_account(project: Path) -> None:
    """Leaves what PREPARATION does, in the running embedded AWS of a project."""
    environment = Project(project).environment("local")
    state = control.running(project)
    assert state is not None
    clients = LoopbackClients(state.connection)

    def client(service: str) -> Any:
        return clients.client(service, environment.region)

    bootstrap(client)
    deploy_foundation(client, environment)
    clients.close()


def run_page(
    page: Path,
    project: Path,
    replaced: Mapping[str, str] | None = None,
    *,
    prepares_by_cli: bool = False,
    sections: Collection[str] = (),
) -> str:
    """Runs every `run` block of a page in a copy of the project, and checks every `output` block.

    `replaced` texts of the commands are others here, such as a port. The CDK CLI prepares the
    account in eight seconds. Only the given `sections` run, if there are any. Returns what the last
    block printed.
    """
    shell = Shell(project)
    printed = ""
    try:
        for block in blocks(page):
            if sections and block.section not in sections:
                continue
            if block.labels == ("run",):
                for command in ("cdk", "slipway"):
                    for _ in range(block.text.count(f"{command} ")):
                        count_start(command)
                if "slipway local start" in block.text:
                    count_start("embedded-aws")
                commands = block.text
                for text, other in (replaced or {}).items():
                    commands = commands.replace(text, other)
                before, preparation, after = commands.partition(PREPARATION)
                if preparation and not prepares_by_cli:
                    shell.run(before)
                    prepare_account(project)
                    commands = after
                printed = shell.run(commands)
            elif block.labels == ("output",):
                assert without_indent(block.text) in without_indent(printed), block.place
    finally:
        shell.end()
    return printed
