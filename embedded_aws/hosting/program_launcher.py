"""Starts containers as processes: the program of the image's family, from this checkout."""

import functools
from collections.abc import Callable, Mapping, Sequence

from embedded_aws.hosting.families import container_environment, find_program
from embedded_aws.hosting.families.program import ContainerProgram
from embedded_aws.hosting.launch import CannotLaunchError, Placement
from embedded_aws.hosting.process import ContainerProcess
from embedded_aws.identity import Connection


class ProgramLauncher:
    """Starts the program that stands for an image.

    Args:
        programs: maps an image repository to its program.
        connection: leads the programs to the embedded AWS.
    """

    def __init__(self, programs: Mapping[str, ContainerProgram], connection: Connection) -> None:
        self._programs = programs
        self._connection = connection

    def find(self, image: str) -> functools.partial[ContainerProcess]:
        """Returns the function that starts the program of an image.

        Raises:
            CannotLaunchError: no program stands for the image.
        """
        return functools.partial(self._launch, find_program(self._programs, image))

    def check(self, image: str, backends: Sequence[str]) -> None:
        """Checks whether the program of an image, with Triton's back ends, is on this machine.

        Raises:
            CannotLaunchError: it is not.
        """
        missing = find_program(self._programs, image).find_missing(backends)
        if missing:
            raise CannotLaunchError(
                f"The Triton of this machine does not have the backend {', '.join(missing)}. Set "
                "TRITON_HOME to a Triton that has it, and start the embedded AWS again."
            )

    def _launch(
        self,
        program: ContainerProgram,
        placement: Placement,
        *,
        on_line: Callable[[str], None],
        grace_seconds: float,
    ) -> ContainerProcess:
        environment = container_environment(
            program=program,
            declared=placement.declared,
            region=placement.region,
            port=placement.port,
            model_directory=placement.model_directory,
            home=placement.home,
            connection=None if placement.is_isolated else self._connection,
        )
        return ContainerProcess(
            command=program.command,
            environment=environment,
            directory=placement.home,
            on_line=on_line,
            grace_seconds=grace_seconds,
        )
