"""The quickstart, run from the page's own text as a reader copies it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from demo import copy_project
from embedded_aws import control
from tests.support.pages import ROOT, blocks
from tests.support.processes import kill_tree
from tests.support.starts import count_start

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(600)]

PAGE = ROOT / "docs" / "quickstart.md"
END = "the block ended"


@pytest.fixture
def project(tmp_path: Path):
    copy_project(tmp_path)
    yield tmp_path
    control.stop(tmp_path)


class Shell:
    """A shell in which one block after the other runs."""

    def __init__(self, project: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.process = subprocess.Popen(
            ["bash", "-euo", "pipefail"],
            cwd=project,
            # Only the port is another one: other tests run on this machine too.
            env={**os.environ, "PATH": path, "SLIPWAY_LOCAL_PORT": str(port)},
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
            if line == f"{END}\n":
                return printed
            printed += line
        raise AssertionError(f"{commands}\n{printed}")

    def end(self) -> None:
        """Ends the shell and what it still runs."""
        kill_tree(self.process)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def without_indent(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def test_every_command_of_the_page_works(project: Path) -> None:
    count_start("embedded-aws")
    shell = Shell(project)
    try:
        printed = ""
        for block in blocks(PAGE):
            if block.labels == ("run",):
                for command in ("cdk", "slipway"):
                    for _ in range(block.text.count(f"{command} ")):
                        count_start(command)
                printed = shell.run(block.text)
            elif block.language == "sh":
                assert block.text.startswith("make setup"), block.place
            else:
                assert block.labels == ("output",), block.place
                assert without_indent(block.text) in without_indent(printed), block.place
    finally:
        shell.end()
    assert "Nothing is left of gpt2-autocomplete in local" in printed
    changed = project / "model_configs" / "gpt2-autocomplete.yaml"
    assert changed.read_bytes() == (ROOT / "model_configs" / changed.name).read_bytes()
