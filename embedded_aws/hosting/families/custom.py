"""Images of the user's own: the program that the config names stands for one."""

import json
from collections.abc import Mapping
from pathlib import Path

from slipway.config.names import LOCAL_PROGRAM_VARIABLE
from slipway.embedded_aws.hosting.families.program import CannotLaunchError, ContainerProgram


def programs(sources: Path) -> Mapping[str, ContainerProgram]:  # noqa: ARG001  # Slipway's
    """Returns none: an image's name tells nothing."""
    return {}


def own_program(declared: Mapping[str, str], project: Path | None) -> ContainerProgram | None:
    """Returns the program that a model's variables name; None if they name none.

    `project` is the folder that the program's directory is in; None: there is no project. Raises
    `CannotLaunchError` if the directory does not exist.
    """
    told = declared.get(LOCAL_PROGRAM_VARIABLE)
    if told is None or project is None:
        return None
    local = json.loads(told)
    directory = project / local["directory"]
    if not directory.is_dir():
        raise CannotLaunchError(f"The directory of `serving.local` is missing: {directory}.")
    # SageMaker starts an image with this argument.
    return ContainerProgram((*local["program"], "serve"), directory=directory)
