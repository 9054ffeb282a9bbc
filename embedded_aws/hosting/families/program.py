"""The entry of a program in the table of images."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ContainerProgram:
    """A program that stands for every image of one repository.

    Attributes:
        command: program and arguments that serve.
        environment: variables that the image sets, and variables of local runs only.
        entrypoint: program that runs a training job's arguments. Empty: no training job runs in the
            image.
        tag_environment: further variables, which the tag of an image implies.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    tag_environment: Callable[[str], Mapping[str, str]] = lambda _: {}
