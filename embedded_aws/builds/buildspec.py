"""Reads a buildspec; what the embedded AWS does not run is refused by name.

https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

PHASES = ("install", "pre_build", "build", "post_build")
_RUNTIMES = ("python",)
_MEMBERS = {"version", "env", "phases"}
_PHASE_MEMBERS = {"commands", "finally"}
_ENVIRONMENT_MEMBERS = {"shell", "variables"}
_SHELLS = {"sh": "/bin/sh", "bash": "bash"}
_DEFAULT_SHELL = "sh"


class BuildspecError(Exception):
    """The buildspec cannot be read or run; the message says why."""


@dataclass(frozen=True)
class Phase:
    """One phase.

    Args:
        name: as in the buildspec, for example `pre_build`.
        commands: run in order, until one fails.
        always: run afterwards in any case: the list `finally`.
    """

    name: str
    commands: Sequence[str] = ()
    always: Sequence[str] = ()


@dataclass(frozen=True)
class Buildspec:
    """A buildspec.

    Args:
        shell: path or name of the shell.
        variables: plain variables of `env`.
        runtimes: runtime to version; the embedded AWS has this machine's Python only.
        phases: those that the buildspec has, in the order in which they run.
    """

    shell: str
    variables: Mapping[str, str]
    runtimes: Mapping[str, str]
    phases: Sequence[Phase]


def read_buildspec(text: str) -> Buildspec:
    """Reads a buildspec of version 0.2, YAML or JSON.

    Raises:
        BuildspecError: it is malformed, or has a part that the embedded AWS does not run.
    """
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BuildspecError(f"YAML_FILE_ERROR Message: {error}") from None
    if not isinstance(content, dict):
        raise BuildspecError("YAML_FILE_ERROR Message: the buildspec is no mapping")
    if str(content.get("version")) != "0.2":
        raise BuildspecError("YAML_FILE_ERROR Message: only version 0.2 runs here")
    environment, phases = _mapping(content, "env"), _mapping(content, "phases")
    refused = [
        *_unknown(content, _MEMBERS, ""),
        *_unknown(environment, _ENVIRONMENT_MEMBERS, "env."),
    ]
    refused += _unknown(phases, {*PHASES}, "phases.")
    shell = environment.get("shell", _DEFAULT_SHELL)
    if shell not in _SHELLS:
        refused.append(f"env.shell {shell}")
    found, runtimes = [], dict[str, str]()
    for name in PHASES:
        phase = _mapping(phases, name)
        members = _PHASE_MEMBERS | ({"runtime-versions"} if name == "install" else set())
        refused += _unknown(phase, members, f"phases.{name}.")
        runtimes |= {str(k): str(v) for k, v in _mapping(phase, "runtime-versions").items()}
        if phase:
            found.append(Phase(name, _commands(phase, "commands"), _commands(phase, "finally")))
    refused += [f"the runtime {name}" for name in runtimes if name not in _RUNTIMES]
    if refused:
        raise BuildspecError(
            f"The embedded AWS does not run {', '.join(refused)} of a buildspec. "
            "docs/embedded-aws/services.md lists what it does."
        )
    variables = {str(k): str(v) for k, v in _mapping(environment, "variables").items()}
    return Buildspec(_SHELLS[shell], variables, runtimes, found)


def _mapping(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = content.get(name) or {}
    if not isinstance(value, dict):
        raise BuildspecError(f"YAML_FILE_ERROR Message: {name} is no mapping")
    return value


def _commands(phase: Mapping[str, Any], name: str) -> list[str]:
    value = phase.get(name) or []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BuildspecError(f"YAML_FILE_ERROR Message: {name} is no list of commands")
    return value


def _unknown(content: Mapping[str, Any], known: set[str], path: str) -> Iterator[str]:
    return (f"{path}{name}" for name in content if name not in known)
