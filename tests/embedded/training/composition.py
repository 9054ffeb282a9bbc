"""An embedded AWS for these tests: SageMaker and moto, with the stand-in as its only container."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from slipway.embedded_aws.hosting.families.program import ContainerProgram
from slipway.embedded_aws.server import EmbeddedAws
from tests.support.accounts import embedded_aws

REPOSITORY = "tests/compiler"
IMAGE = f"123456789012.dkr.ecr.us-east-1.amazonaws.com/{REPOSITORY}:1-compiler"
SERVER_IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/tests/server:1"
_PROGRAM = (sys.executable, str(Path(__file__).with_name("program.py")))
_PARTITION = (sys.executable, str(Path(__file__).with_name("partition.py")))
PROGRAMS = {
    REPOSITORY: ContainerProgram((*_PROGRAM, "serve"), {"FROM_IMAGE": "yes"}, _PROGRAM),
    "tests/server": ContainerProgram((*_PROGRAM, "serve")),
    # AWS's LMI images.
    "djl-inference": ContainerProgram((*_PROGRAM, "serve"), entrypoint=_PARTITION),
    # What a project's own image is called.
    "slipway/tensorrt": ContainerProgram((*_PROGRAM, "serve"), entrypoint=_PROGRAM),
}


@contextlib.contextmanager
def training(directory: Path, *, time_scale: float = 1.0) -> Iterator[EmbeddedAws]:
    with embedded_aws(directory, programs=PROGRAMS, time_scale=time_scale) as server:
        yield server
