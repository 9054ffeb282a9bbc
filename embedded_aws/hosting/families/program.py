"""The entry of a program in the table of images."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


class CannotLaunchError(Exception):
    """Nothing can be started for an image; the message says why, and what to do."""


@dataclass(frozen=True)
class ContainerProgram:
    """A program that stands for every image of one repository.

    Attributes:
        command: program and arguments that serve.
        environment: variables that the image sets, and variables of local runs only.
        entrypoint: program that runs a training job's arguments. Empty: no training job runs in the
            image.
        image_python: the Python in the image that carries requests to the program. None: the image
            is not run, because Slipway's tests cannot run it.
        tag_environment: further variables, which the tag of an image implies.
        directory: its working directory; None: the container's home.
        find_missing: returns which of Triton's back ends the program lacks on this machine.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    image_python: str | None = None
    tag_environment: Callable[[str], Mapping[str, str]] = lambda _: {}
    directory: Path | None = None
    find_missing: Callable[[Sequence[str]], Sequence[str]] = lambda _: ()


def slipways_program(family: str, sources: Path) -> ContainerProgram:
    program = (sys.executable, "-m", f"containers.{family}")
    return ContainerProgram(
        (*program, "serve"),
        # The second serves a page about the endpoint's requests, at /docs of the container's port.
        environment={"PYTHONPATH": str(sources), "SLIPWAY_DOCS": "true"},
        entrypoint=program,
        image_python="/opt/slipway/venv/bin/python3",
    )
