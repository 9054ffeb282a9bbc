"""Starts containers as processes: the program of the image's family, from this checkout."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slipway.embedded_aws.hosting.families import (
    container_environment,
    custom,
    find_program,
)
from slipway.embedded_aws.hosting.families.program import CannotLaunchError, ContainerProgram
from slipway.embedded_aws.hosting.launch.container_spec import ContainerSpec
from slipway.embedded_aws.identity import Connection
from slipway.embedded_aws.processes.process import SupervisedProcess, start_program


@dataclass(frozen=True)
class ProgramLauncher:
    _programs: Mapping[str, ContainerProgram]
    _connection: Connection
    _project: Path | None = None

    def find(self, image: str, declared: Mapping[str, str]) -> functools.partial[SupervisedProcess]:
        """`declared` is the model's Environment. Raises `CannotLaunchError` without a program."""
        own = custom.own_program(declared, self._project)
        return functools.partial(self._launch, own or find_program(self._programs, image))

    def check(self, image: str, backends: Sequence[str]) -> None:
        """Raises `CannotLaunchError` if this machine lacks the image's program or its back ends."""
        missing = find_program(self._programs, image).find_missing(backends)
        if missing:
            raise CannotLaunchError(
                f"The Triton of this machine does not have the backend {', '.join(missing)}. Set "
                "TRITON_HOME to a Triton that has it, and start the embedded AWS again."
            )

    def _launch(
        self,
        program: ContainerProgram,
        spec: ContainerSpec,
        on_line: Callable[[str], None],
        grace_seconds: float,
    ) -> SupervisedProcess:
        environment = container_environment(
            program=program,
            declared=spec.declared,
            region=spec.region,
            home=spec.home,
            connection=None if spec.is_isolated else self._connection,
        )
        environment["SAGEMAKER_BIND_TO_PORT"] = str(spec.port)
        environment["SM_MODEL_DIR"] = str(spec.model_directory)
        return start_program(
            command=program.command,
            environment=environment,
            directory=program.directory or spec.home,
            on_line=on_line,
            grace_seconds=grace_seconds,
        )
