"""The images of these tests, and the stand-ins that run in their place."""

import sys
from pathlib import Path

from slipway.embedded_aws.hosting.families.program import ContainerProgram

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
