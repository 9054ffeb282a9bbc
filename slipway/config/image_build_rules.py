"""Checks of an environment's `image_builds` beyond the form of its fields."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.names import LOCAL
from slipway.config.sections.image_builds import PUBLIC_BUILDS
from slipway.config.sections.keys import is_of_region
from slipway.errors import Kind, Problem

_Field = tuple[str, ...]


def image_build_problems(
    environment: Environment, environments: Mapping[str, object], root: Path
) -> Iterator[Problem]:
    """Yields the problems of one environment's `image_builds`.

    Args:
        environment: has the checked section.
        environments: everything in environments.yaml, in the file's order.
        root: the project.
    """
    builds = environment.image_builds
    field = (environment.name, "image_builds")
    if environment.is_local and builds != PUBLIC_BUILDS:
        yield Problem(
            Code.IMAGE_BUILDS,
            Kind.COMPATIBILITY,
            "the embedded AWS builds no images",
            "Remove `image_builds`; set it in the environments that are real accounts.",
            field,
        )
        return
    if builds.repository_key is not None:
        yield from _repository_key(
            environment, builds.repository_key, environments, (*field, "repository_key")
        )
    if builds.ca_bundle is not None:
        yield from _ca_bundle(builds.ca_bundle, root, (*field, "ca_bundle"))


def _repository_key(
    environment: Environment, key: str, environments: Mapping[str, object], field: _Field
) -> Iterator[Problem]:
    if not is_of_region(key, environment.region):
        yield Problem(
            Code.KEY_ELSEWHERE,
            Kind.VALUE,
            f"{key} is in another region than the environment",
            "A key encrypts in its own region alone: name a key of the environment's region.",
            field,
        )
    owner = _owner(environment, environments)
    if owner != environment.name:
        yield Problem(
            Code.IMAGE_BUILDS,
            Kind.COMPATIBILITY,
            f"the repositories belong to the environment {owner}, which comes first in the file "
            "and has the same account and region",
            f"Remove this line; `repository_key` of {owner} sets their key.",
            field,
        )


def _owner(environment: Environment, environments: Mapping[str, object]) -> str:
    """Returns the first environment of the same account and region, which has the repositories."""
    for name, content in environments.items():
        if (
            isinstance(content, Mapping)
            and name != LOCAL
            and content.get("account") == environment.account
            and content.get("region") == environment.region
        ):
            return name
    return environment.name


def _ca_bundle(path: str, root: Path, field: _Field) -> Iterator[Problem]:
    try:
        content = (root / path).read_bytes()
    except OSError as error:
        yield Problem(
            Code.UNUSABLE_CA_BUNDLE,
            Kind.VALUE,
            f"{path} cannot be read: {error.strerror}",
            "Name a PEM file below the project's folder.",
            field,
        )
        return
    if b"-----BEGIN CERTIFICATE-----" not in content:
        yield Problem(
            Code.UNUSABLE_CA_BUNDLE,
            Kind.VALUE,
            f"{path} holds no certificate",
            "Name a PEM file: its certificates begin with `-----BEGIN CERTIFICATE-----`.",
            field,
        )
