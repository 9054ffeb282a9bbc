"""Starts containers in their images, with a container engine of this machine."""

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import slipway
from slipway.embedded_aws.containers.engine import Engine, EngineError
from slipway.embedded_aws.containers.images import find_image
from slipway.embedded_aws.containers.supervisor import Orders
from slipway.embedded_aws.hosting.families import image_of, sagemaker_variables
from slipway.embedded_aws.hosting.families.program import CannotLaunchError, ContainerProgram
from slipway.embedded_aws.hosting.launch.container_spec import ContainerSpec
from slipway.embedded_aws.processes.process import SupervisedProcess

# Of Slipway itself, for a Python without site-packages.
_SEARCH_PATH: Final = str(Path(slipway.__file__).parents[1])
_MODEL: Final = "/opt/ml/model"
# Each container has a loopback of its own, so that all can listen on SageMaker's port.
_PORT: Final = 8080
# An id that no image of Slipway's knows, which owns no file of an image.
_USER: Final = "1000:1000"
_OWNER_LABEL: Final = "slipway.embedded-aws"


class ImageLauncher:
    def __init__(
        self, engine: Engine, programs: Mapping[str, ContainerProgram], directory: Path
    ) -> None:
        self._engine = engine
        self._programs = programs
        self._owner = f"{_OWNER_LABEL}={directory.resolve()}"

    def remove_left_containers(self) -> None:
        """Removes the containers of an embedded AWS of the same directory that was killed."""
        left = self._engine.answer("ps", "--all", "--quiet", f"--filter=label={self._owner}")
        for container in left.split():
            # A supervisor may remove it at the same time.
            self._engine.run("rm", "--force", "--volumes", container)

    def find(
        self,
        image: str,
        declared: Mapping[str, str],  # noqa: ARG002  # the image has its program
    ) -> "functools.partial[ImageContainer]":
        """Returns what starts an image's containers; raises `CannotLaunchError` without one."""
        repository, tag = image_of(image)
        program = self._programs.get(repository)
        if program is None or program.image_python is None:
            known = sorted(name for name, each in self._programs.items() if each.image_python)
            raise CannotLaunchError(
                f"With `--containers` the embedded AWS runs only images that Slipway builds, and "
                f"not {image}. Known repositories: {', '.join(known)}. Start it without "
                "`--containers` to run programs as processes."
            )
        try:
            name = find_image(self._engine, repository, tag)
        except EngineError as error:
            raise CannotLaunchError(str(error)) from error
        return functools.partial(self._launch, name, program.image_python)

    def check(self, image: str, backends: Sequence[str]) -> None:  # noqa: ARG002  # the image has them
        self.find(image, {})

    def _launch(
        self,
        image: str,
        python: str,
        spec: ContainerSpec,
        on_line: Callable[[str], None],
        grace_seconds: float,
    ) -> "ImageContainer":
        orders = Orders(
            command=self._engine.command,
            name=spec.name,
            create=(*self._options(spec), image),
            port=spec.port,
            container_port=_PORT,
            python=python,
            grace_seconds=grace_seconds,
        )
        return ImageContainer(self._engine, orders, spec.home, on_line)

    def _options(self, spec: ContainerSpec) -> tuple[str, ...]:
        variables = {
            **spec.declared,
            **sagemaker_variables(spec.region),
            "SAGEMAKER_BIND_TO_PORT": str(_PORT),
        }
        model = f"type=bind,source={spec.model_directory},destination={_MODEL},readonly"
        return (
            "--rm",
            f"--label={self._owner}",
            # Loopback alone: requests come by the tunnel, and nothing goes out.
            "--network=none",
            "--read-only",
            "--tmpfs=/tmp",
            f"--user={_USER}",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            f"--mount={model}",
            *self._engine.run_options,
            *(f"--env={name}={value}" for name, value in variables.items()),
        )


class ImageContainer(SupervisedProcess):
    def __init__(
        self, engine: Engine, orders: Orders, directory: Path, on_line: Callable[[str], None]
    ) -> None:
        self._engine = engine
        self._name = orders.name
        module = "slipway.embedded_aws.containers.supervisor"
        super().__init__(
            command=[sys.executable, "-S", "-m", module, orders.text()],
            environment={**engine.environment(), "PYTHONPATH": _SEARCH_PATH},
            directory=directory,
            on_line=on_line,
        )

    @functools.cached_property
    def ancestor_id(self) -> int | None:
        """An engine in a virtual machine, such as Docker Desktop, tells ids of processes there."""
        form = "{{.State.Pid}} {{.Id}}"
        told = self._engine.run("inspect", f"--format={form}", self._name)
        if told.returncode != 0:
            return None
        process, container = told.stdout.split()
        folder = Path("/proc", process)
        try:
            if container not in (folder / "cgroup").read_text("utf-8"):
                return None
            fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            return None
        return int(fields[1])
