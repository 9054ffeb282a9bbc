"""Reads a buildspec, and makes one shell program of it; what does not run is refused by name.

https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PHASES = ("install", "pre_build", "build", "post_build")
_RUNTIMES = ("python",)
_MEMBERS = {"version", "env", "phases"}
_PHASE_MEMBERS = {"commands", "finally"}
_ENVIRONMENT_MEMBERS = {"shell", "variables"}
_SHELLS = {"sh": "/bin/sh", "bash": "bash"}
_DEFAULT_SHELL = "sh"
# A failure there ends the build; after a failed `build`, `post_build` still runs:
# https://docs.aws.amazon.com/codebuild/latest/userguide/view-build-details-phases.html
_ENDS_THE_BUILD = ("install", "pre_build")
# A mark begins with a word that no output can know, and is never shown.
PHASE, COMMAND, FAILED, PHASE_OVER = "phase", "command", "failed", "over"


class BuildspecError(Exception):
    """The buildspec cannot be read or run; the message says why."""


@dataclass(frozen=True)
class Phase:
    """One phase: its commands run in order until one fails, and those of `finally` in any case."""

    name: str
    commands: Sequence[str] = ()
    always: Sequence[str] = ()


@dataclass(frozen=True)
class Buildspec:
    # Path or name.
    shell: str
    variables: Mapping[str, str]
    # Runtime to version; the embedded AWS has this machine's Python only.
    runtimes: Mapping[str, str]
    # Those that the buildspec has, in the order in which they run.
    phases: Sequence[Phase]


def read_buildspec(text: str) -> Buildspec:
    """Reads a buildspec of version 0.2, YAML or JSON; raises BuildspecError."""
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


def write_script(buildspec: Buildspec, folder: Path, mark: str) -> Path:
    """Writes one shell program of a buildspec into a folder, and returns its path.

    All commands of a build run in one shell, so the next command finds variables and the folder:
    https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html ("versions"). The
    program prints marks between the output of the commands.
    """
    lines = ["CODEBUILD_BUILD_SUCCEEDING=1", "export CODEBUILD_BUILD_SUCCEEDING", "_status=0"]
    for phase in buildspec.phases:
        lines += _phase_lines(phase, folder, mark)
    path = folder / "build.sh"
    path.write_text("\n".join([*lines, 'exit "$_status"']) + "\n", encoding="utf-8")
    return path


def _phase_lines(phase: Phase, folder: Path, mark: str) -> list[str]:
    lines = [f"echo {mark} {PHASE} {phase.name}", "_failed=0"]
    lines += _command_lines(phase.name, phase.commands, folder, mark, stops_at_failure=True)
    lines += _command_lines(
        f"{phase.name}-finally", phase.always, folder, mark, stops_at_failure=False
    )
    lines.append(f'echo {mark} {PHASE_OVER} {phase.name} "$_failed"')
    ends = ' exit "$_failed";' if phase.name in _ENDS_THE_BUILD else ""
    lines.append(
        f'if [ "$_failed" -ne 0 ]; then _status=$_failed; CODEBUILD_BUILD_SUCCEEDING=0;{ends} fi'
    )
    return lines


def _command_lines(
    name: str, commands: Sequence[str], folder: Path, mark: str, *, stops_at_failure: bool
) -> list[str]:
    lines = []
    for number, command in enumerate(commands):
        path = folder / f"{name}-{number}.sh"
        path.write_text(f"{command}\n", encoding="utf-8")
        shown = shlex.quote(" ".join(command.split("\n")))
        run = (
            f"printf '%s %s %s\\n' {mark} {COMMAND} {shown}; . {shlex.quote(str(path))} || "
            f"{{ _failed=$?; printf '%s %s %s %s\\n' {mark} {FAILED} \"$_failed\" {shown}; }}"
        )
        guard = 'if [ "$_failed" -eq 0 ]; then ' if stops_at_failure else "if true; then "
        lines.append(f"{guard}{run}; fi")
    return lines
