"""Slipway's TensorRT container, on its CPU back end."""

import sys
from collections.abc import Mapping

from embedded_aws.hosting.families.program import ContainerProgram

_PROGRAM = (sys.executable, "-m", "containers.tensorrt")
PROGRAMS: Mapping[str, ContainerProgram] = {
    "slipway/tensorrt": ContainerProgram(
        (*_PROGRAM, "serve"),
        # Serves a page about the endpoint's requests, at /docs of the container's own port.
        environment={"SLIPWAY_DOCS": "true"},
        entrypoint=_PROGRAM,
        image_python="/opt/slipway/venv/bin/python3",
    )
}
