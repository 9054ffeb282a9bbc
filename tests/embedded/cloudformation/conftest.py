"""An embedded AWS per test module, with the stand-in as its only container."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from slipway.embedded_aws.server import EmbeddedAws
from tests.support.accounts import embedded_aws
from tests.support.stacks import Stacks

REGION = "eu-west-1"
# Stands for the image of that repository: answers what it is told to, see its docstring.
_PROGRAM = Path(__file__).parents[1] / "hosting" / "stand_in.py"
PROGRAMS = {"tests/stand-in": ContainerProgram((sys.executable, str(_PROGRAM)))}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    directory: Path = tmp_path_factory.mktemp("embedded-aws")
    with embedded_aws(directory, programs=PROGRAMS, recorded=["AWS::AppRunner::*"]) as server:
        yield server


@pytest.fixture(scope="module")
def stacks(aws: EmbeddedAws) -> Iterator[Stacks]:
    clients = LoopbackClients(aws.connection)
    yield Stacks(aws, clients, REGION)
    clients.close()
