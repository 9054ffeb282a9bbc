"""Finds the models of a project that share an endpoint: a host, and its guests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from slipway.config.load import InvalidConfigError
from slipway.config.sections.base import UnknownValueError
from slipway.errors import Problem, UserError
from slipway.planning.artifacts import has_source
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.plan import GuestPlan
from slipway.planning.sharing import (
    compare_with_host,
    guest_plan,
    host_of,
    invalid_guest,
    invalid_host,
    unknown_host,
)

# `Project` calls this module.
if TYPE_CHECKING:
    from slipway.config.environments import Environment
    from slipway.config.schema import ModelConfig
    from slipway.planning.situation import Situation
    from slipway.project import Project

_NAMES_HOST: Final = b"endpoint_of"


def find_guests(project: Project, situation: Situation) -> tuple[list[GuestPlan], list[Problem]]:
    """Returns the models whose copies run on a model's endpoint, and those that cannot be read."""
    config, environment = situation.config, situation.environment
    guests, problems = list[GuestPlan](), list[Problem]()
    if config.endpoint.mode != SCALE_TO_ZERO or host_of(config) is not None:
        return guests, problems
    for name in _naming(project, config.name):
        try:
            other = project.situation(name, environment)
            if host_of(other.config) == config.name and has_source(other):
                guests.append(guest_plan(project.plan(name, environment, allow_unpublished=True)))
        except UserError:
            problems.append(invalid_guest(config.name, name))
    return guests, problems


def host_problems(project: Project, situation: Situation) -> list[Problem]:
    """Returns the reasons for which a model cannot be a guest of the host that it names."""
    config = situation.config
    host = host_of(config)
    if host is None:
        return []
    if (unknown := unknown_host(host, config.name, project.files)) is not None:
        return [unknown]
    try:
        return list(compare_with_host(situation, project.situation(host, situation.environment)))
    except UserError:
        return [invalid_host(host)]


def models_beside(project: Project, name: str, environment: Environment) -> list[str]:
    """Returns the models that share an endpoint with a model: its host, or its guests."""
    host = named_host(project, name, environment)
    if host is not None:
        return [host] if host in project.files and host != name else []
    # Reading YAML takes time, and of hundreds of models few share an endpoint.
    naming = _naming(project, name)
    if not naming or not _has_copies(project, name, environment):
        return []
    return [
        other
        for other in naming
        if named_host(project, other, environment) == name
        and not _has_no_source(project, other, environment)
    ]


def named_host(project: Project, name: str, environment: Environment) -> str | None:
    """Returns the model that a model's file names as its host; None if it names none.

    The rest of the file may have problems. The copies of such a guest may run, and have to go
    before their host.
    """
    if _NAMES_HOST not in project.texts.get(name, b""):
        return None
    try:
        return host_of(_known_config(project, name, environment))
    except (UnknownValueError, UserError):
        return None  # its own stack carries the report


def endpoint_name(project: Project, name: str, environment: Environment) -> str:
    """Returns the endpoint that answers for a model: its own, or its host's.

    Args:
        project: has the config. If it cannot be read, the model has an endpoint of its own.
        name: of the model.
        environment: the environment that it is deployed to.
    """
    try:
        config = project.config(name, environment.name).config
    except UserError:
        # A command that asks an endpoint works while its file is in the middle of a change.
        return environment.stack_name(name)
    return environment.stack_name(host_of(config) or name)


def _known_config(project: Project, name: str, environment: Environment) -> ModelConfig:
    """Returns a model's config, or the part of it that is valid.

    Raises:
        UserError: it is no YAML.
    """
    try:
        return project.config(name, environment.name).config
    except InvalidConfigError as error:
        return error.known


def _has_copies(project: Project, name: str, environment: Environment) -> bool:
    try:
        return _known_config(project, name, environment).endpoint.mode == SCALE_TO_ZERO
    except (UnknownValueError, UserError):
        return False  # its own stack carries the report


def _has_no_source(project: Project, name: str, environment: Environment) -> bool:
    """Returns whether a model belongs to other environments only."""
    try:
        return not has_source(project.situation(name, environment))
    except UserError:
        return False


def _naming(project: Project, host: str) -> list[str]:
    """Returns the other models whose files may name a model as their host."""
    word = host.encode()
    return [
        name
        for name, text in project.texts.items()
        if name != host and _NAMES_HOST in text and word in text
    ]
