"""Selects the program that stands for a container image, and builds its environment.

The image itself is never pulled. The name of its repository selects one of this project's container
programs. A name that is not in the table fails the endpoint, with a message that lists the known
names.
"""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from slipway.codes.code import Code
from slipway.config.family_entries import family_entries
from slipway.embedded_aws.hosting.families import custom, lmi, neuron, tensorrt, triton
from slipway.embedded_aws.hosting.families.program import CannotLaunchError, ContainerProgram
from slipway.embedded_aws.identity import Connection
from slipway.errors import UserError
from slipway.image_sources import SOURCES_FOLDER

_PROJECT = re.compile(r"^slipway/[a-z0-9]+/(?=[a-z]+$)")
# REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@DIGEST
_IMAGE = re.compile(r"[^/]+/(?P<repository>[^:@]+)(?:[:@].+)?")
_ECR_IMAGE = re.compile(r"\d{12}\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.(?P<suffix>[a-z0-9.]+)/.+")


def programs(sources: Path = SOURCES_FOLDER) -> Mapping[str, ContainerProgram]:
    """Returns the program that stands for the images of a repository, by the repository's name.

    `sources` has the images' sources. A family of another package that cannot be used is a
    `UserError`.
    """
    found = {
        repository: program
        for family in (tensorrt, lmi, triton, neuron, custom)
        for repository, program in family.programs(sources).items()
    }
    if family_entries():
        # Sections are imported only for another package: the embedded AWS needs none.
        from slipway.config.sections.serving import PACKAGES

        for name in PACKAGES.sections:
            brought = PACKAGES.part(name, "programs", dict, {})
            if taken := sorted(brought.keys() & found.keys()):
                raise UserError.of(
                    Code.FAMILY_PACKAGE,
                    f"the package {PACKAGES.package_of(name)} brings a program for images of "
                    f"{', '.join(taken)}, which have one already",
                    "Give its images another repository.",
                )
            found |= brought
    return found


def find_program(programs: Mapping[str, ContainerProgram], image: str) -> ContainerProgram:
    """Returns the program of an image; raises `CannotLaunchError` if its repository is unknown."""
    repository, tag = image_of(image)
    program = programs.get(repository)
    if program is None:
        raise CannotLaunchError(
            f"No program of the embedded AWS stands for image {image}. "
            f"Known repositories: {', '.join(sorted(programs))}. `serving.local` of a config names "
            "a program for an image of your own."
        )
    told = program.tag_environment(tag)
    return replace(program, environment={**program.environment, **told}) if told else program


def image_of(image: str) -> tuple[str, str]:
    """Returns the repository, as the table names it, and the tag of an image."""
    match = _IMAGE.fullmatch(image)
    # A project's repositories have its name in the middle: slipway/PROJECT/FAMILY.
    repository = _PROJECT.sub("slipway/", match["repository"]) if match else ""
    return repository, image.rpartition(":")[2]


def registry_of(image: str) -> tuple[str, str] | None:
    """Returns region and DNS suffix of an image in ECR; None for any other registry."""
    match = _ECR_IMAGE.fullmatch(image)
    return (match["region"], match["suffix"]) if match else None


def sagemaker_variables(region: str) -> dict[str, str]:
    return {"AWS_REGION": region, "AWS_DEFAULT_REGION": region, "SAGEMAKER_REGION": region}


def container_environment(
    *,
    program: ContainerProgram,
    declared: Mapping[str, str],
    region: str,
    home: Path,
    connection: Connection | None,
) -> dict[str, str]:
    """Builds the variables that every container's program has.

    Only the search path is inherited from the user's environment. Neither the user's credentials
    nor any other variable may change how a container behaves. `declared` is the Environment of the
    model or of the training job. The `connection` leads to the embedded AWS; None under network
    isolation, which has no AWS and no credentials.
    """
    search_path = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    environment = {
        "PATH": os.pathsep.join(search_path),
        # Lines reach the log as soon as they are written, as the images' Dockerfiles set it.
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        **program.environment,
        **declared,
        **sagemaker_variables(region),
    }
    if connection is not None:
        # Stands for the execution role's credentials.
        environment |= connection.variables()
    return environment
