"""Triton: the user's own server, in AWS's image and in Slipway's."""

import functools
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from slipway.embedded_aws.hosting.families.program import ContainerProgram, slipways_program
from slipway.embedded_aws.hosting.families.triton import triton_server

# A container's own home directory is another.
_HOME = os.environ.get("TRITON_HOME") or str(triton_server.servers_directory(os.environ) or "")


def programs(sources: Path) -> Mapping[str, ContainerProgram]:
    return {
        "sagemaker-tritonserver": ContainerProgram(
            triton_server.COMMAND,
            {"TRITON_HOME": _HOME},
            find_missing=functools.partial(triton_server.missing_backends, Path(_HOME)),
        ),
        "slipway/triton": replace(
            slipways_program("triton", sources),
            environment={
                "PYTHONPATH": str(sources),
                "SLIPWAY_TRITON_SERVER": os.path.join(_HOME, triton_server.PROGRAM),  # noqa: PTH118
            },
        ),
    }
