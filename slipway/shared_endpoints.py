"""Finds the models of a project that share an endpoint: a host, and its guests."""

from slipway.config.environments import Environment
from slipway.config.load import InvalidConfigError
from slipway.config.schema import ModelConfig
from slipway.config.sections.base import UnknownValueError
from slipway.errors import UserError
from slipway.planning.artifacts import has_source
from slipway.planning.component import SCALE_TO_ZERO
from slipway.project import Project
from slipway.project_files import names_host


def models_sharing_endpoint(project: Project, name: str, environment: Environment) -> list[str]:
    """Returns the models that share an endpoint with a model: its host, or its guests."""
    host = named_host(project, name, environment)
    if host is not None:
        return [host] if host in project.files and host != name else []
    # Reading YAML takes time, and of hundreds of models few share an endpoint.
    naming = project.naming(name)
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
    if not names_host(project.texts.get(name, b"")):
        return None
    if (base := project.base_named_in(name)) is not None:
        return base
    try:
        return _known_config(project, name, environment).endpoint.host
    except (UnknownValueError, UserError):
        return None  # its own stack carries the report


def endpoint_name(project: Project, name: str, environment: Environment) -> str:
    """Returns the endpoint that answers for a model: its own, or its host's.

    If its config cannot be read, the model has an endpoint of its own.
    """
    try:
        config = project.config(name, environment.name).config
    except UserError:
        # A command that asks an endpoint works while its file is in the middle of a change.
        return environment.stack_name(name)
    return environment.stack_name(config.endpoint.host or name)


def _known_config(project: Project, name: str, environment: Environment) -> ModelConfig:
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
        return not has_source(project.deployment(name, environment))
    except UserError:
        return False
