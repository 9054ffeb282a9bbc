"""Makes one shell program of a buildspec, and reads the marks that it prints between its output.

All commands of a build run in one shell, so the next command finds variables and the folder:
https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html ("versions"). A mark
begins with a word that no output can know, and is never shown.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from slipway.embedded_aws.builds.buildspec import Buildspec, Phase

# A failure there ends the build; after a failed `build`, `post_build` still runs:
# https://docs.aws.amazon.com/codebuild/latest/userguide/view-build-details-phases.html
_ENDS_THE_BUILD = ("install", "pre_build")
PHASE, COMMAND, FAILED, PHASE_OVER = "phase", "command", "failed", "over"


def write_script(buildspec: Buildspec, folder: Path, mark: str) -> Path:
    """Writes the program and its commands into a folder; returns the program's path."""
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
