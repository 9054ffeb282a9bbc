"""Triton: the user's own server stands for AWS's image."""

import os
from collections.abc import Mapping

from embedded_aws.hosting.families.program import ContainerProgram
from embedded_aws.hosting.families.triton import triton_server

_HOME = os.environ.get("TRITON_HOME") or triton_server.servers_directory(os.environ)
PROGRAMS: Mapping[str, ContainerProgram] = {
    "sagemaker-tritonserver": ContainerProgram(
        # A container's own home directory is another.
        triton_server.COMMAND,
        {"TRITON_HOME": str(_HOME)} if _HOME else {},
    )
}
