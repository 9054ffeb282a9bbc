"""The builds of one project in CodeBuild: found, started, followed and stopped.

A build goes on when the command that started it is stopped. Its variables say which model it
publishes and from which inputs, so that the next run of the same command finds it.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from slipway.access import Access, existing
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.planning.remote_place import INPUTS
from slipway.publishing.progress import Progress

IN_PROGRESS = "IN_PROGRESS"
_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 0.5, 10.0
_LOG_LINES = 15
_ENDED_LOOKS = 3
# What CodeBuild writes of itself.
_OWN_LINE = "[Container] "

Build = Mapping[str, Any]


@dataclass(frozen=True)
class BuildProject:
    name: str
    compute: str
    time_limit_minutes: int


class PublishBuilds:
    def __init__(self, access: Access, environment: Environment, progress: Progress) -> None:
        self._client = access.client("codebuild")
        self._logs = access.client("logs")
        self._environment = environment
        self._name = environment.publish_project
        self._progress = progress

    def project(self) -> BuildProject:
        """Returns the deployed project; raises `UserError` if there is none."""
        with _reached(Code.BUILD_NOT_STARTED):
            found = self._client.batch_get_projects(names=[self._name])["projects"]
        if not found:
            raise UserError.of(
                Code.NO_PUBLISH_PROJECT,
                f"the foundation of `{self._environment.name}` has no build project {self._name}",
                f"Run `cdk deploy foundation -c env={self._environment.name}` first.",
            )
        compute: str = found[0]["environment"]["computeType"]
        return BuildProject(
            self._name,
            compute.removeprefix("BUILD_GENERAL1_").lower(),
            found[0]["timeoutInMinutes"],
        )

    def running(self, variable: str, value: str) -> list[Build]:
        """Returns the running builds in whose variables a value is, newest first."""
        return [
            build
            for build in self._newest()
            if build["buildStatus"] == IN_PROGRESS and variable_of(build, variable) == value
        ]

    def find(self, identifier: str) -> Build | None:
        with _reached(Code.BUILD_UNREACHABLE):
            found: list[Build] = self._client.batch_get_builds(ids=[identifier])["builds"]
        return found[0] if found else None

    def start(self, source: str, variables: Mapping[str, str]) -> Build:
        """Starts a build of a source, `BUCKET/KEY`, with plain variables; raises `UserError`."""
        # Two commands at the same moment get one build. An ended build is followed by another.
        earlier = sum(variable_of(build, INPUTS) == variables[INPUTS] for build in self._newest())
        with _reached(Code.BUILD_NOT_STARTED):
            build: Build = self._client.start_build(
                projectName=self._name,
                sourceLocationOverride=source,
                environmentVariablesOverride=[
                    {"name": name, "value": value, "type": "PLAINTEXT"}
                    for name, value in variables.items()
                ],
                idempotencyToken=f"{variables[INPUTS][:40]}-{earlier}",
            )["build"]
        return build

    def follow(self, identifier: str) -> Build:
        """Shows a build's log and state until it has ended; returns it; raises `UserError`."""
        pause, token = _FIRST_PAUSE_SECONDS, None
        while True:
            build = self.find(identifier)
            if build is None:
                raise UserError.of(
                    Code.BUILD_UNREACHABLE, f"the build {identifier} is gone", "Run it again."
                )
            token = self._show_log(build, token)
            if build["buildStatus"] != IN_PROGRESS:
                return build
            elapsed = datetime.now(UTC) - build["startTime"]
            phase = build.get("currentPhase", IN_PROGRESS)
            self._progress.job(identifier, phase, max(0.0, elapsed.total_seconds()))
            time.sleep(pause)
            pause = min(pause * 1.3, _LAST_PAUSE_SECONDS)

    def stop(self, identifier: str) -> None:
        """Stops a build, and waits until it has ended."""
        with _reached(Code.BUILD_UNREACHABLE):
            self._client.stop_build(id=identifier)
        pause = _FIRST_PAUSE_SECONDS
        while (build := self.find(identifier)) and build["buildStatus"] == IN_PROGRESS:
            time.sleep(pause)
            pause = min(pause * 1.3, _LAST_PAUSE_SECONDS)

    def failure(self, build: Build) -> UserError:
        """Returns the problem of a build that ended without a result."""
        identifier, status = build["id"], build["buildStatus"]
        said = "".join(f"\n      {line}" for line in self._last_lines(build))
        log = f"; the end of its log:{said}" if said else "; it wrote no log"
        if status == "TIMED_OUT":
            limit = build["timeoutInMinutes"]
            return UserError.of(
                Code.BUILD_TIMED_OUT,
                f"the build {identifier} was stopped at its time limit of {limit} minutes{log}",
                "Run the command again: what was copied is not copied twice. "
                "`remote_publishing.time_limit_minutes` raises the limit.",
            )
        if status == "STOPPED":
            return UserError.of(
                Code.BUILD_STOPPED,
                f"the build {identifier} was stopped by somebody{log}",
                "Run the command again to start another.",
            )
        place = build.get("logs", {})
        return UserError.of(
            Code.BUILD_FAILED,
            f"the build {identifier} ended as {status}: {_reason(build)}{log}",
            "Correct the cause and run the command again. The whole log is in "
            f"{place.get('groupName')}, stream {place.get('streamName')}",
        )

    def _newest(self) -> list[Build]:
        """Returns the newest hundred builds; older ones have ended."""
        with _reached(Code.BUILD_NOT_STARTED):
            ids = self._client.list_builds_for_project(projectName=self._name)["ids"]
            found = self._client.batch_get_builds(ids=ids)["builds"] if ids else []
        order = {identifier: place for place, identifier in enumerate(ids)}
        return sorted(found, key=lambda build: order[build["id"]])

    def _show_log(self, build: Build, token: str | None) -> str | None:
        """Shows the lines since the last look; returns the token of the next look."""
        place, looks = build.get("logs", {}), 0
        if "streamName" not in place:
            return token
        while True:
            with _reached(Code.BUILD_UNREACHABLE):
                found = existing(
                    self._logs.get_log_events,
                    "ResourceNotFoundException",
                    logGroupName=place["groupName"],
                    logStreamName=place["streamName"],
                    startFromHead=True,
                    **({"nextToken": token} if token else {}),
                )
            if found is None:
                return token  # nothing is written yet
            for event in found["events"]:
                line = event["message"].rstrip("\n")
                if line and not line.startswith(_OWN_LINE):
                    self._progress.note(line)
            # The same token again says that there is no more for now.
            over = found["nextForwardToken"] == token
            token = found["nextForwardToken"]
            looks += 1
            if over or (not found["events"] and looks >= _ENDED_LOOKS):
                return token

    def _last_lines(self, build: Build) -> list[str]:
        place = build.get("logs", {})
        if "streamName" not in place:
            return []
        try:
            events = self._logs.get_log_events(
                logGroupName=place["groupName"],
                logStreamName=place["streamName"],
                limit=4 * _LOG_LINES,
                startFromHead=False,
            )["events"]
        except (BotoCoreError, ClientError):
            return []
        lines = [event["message"].rstrip("\n") for event in events]
        return [line for line in lines if line and not line.startswith(_OWN_LINE)][-_LOG_LINES:]


def variable_of(build: Build, name: str) -> str | None:
    """Returns the value of a build's variable; None if it has no such variable."""
    variables = build.get("environment", {}).get("environmentVariables", ())
    return next((item["value"] for item in variables if item["name"] == name), None)


def _reason(build: Build) -> str:
    for phase in build.get("phases", ()):
        for context in phase.get("contexts", ()):
            if context.get("message"):
                message: str = context["message"].strip()
                return message
    return "CodeBuild gives no reason"


@contextmanager
def _reached(code: Code) -> Iterator[None]:
    """Turns errors of the account's answers into `UserError`."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        message, remedy = f"the account does not answer: {error}", "Run the command again."
        if isinstance(error, ClientError):
            detail = error.response["Error"]
            message = f"the account refuses {error.operation_name}: {detail['Code']}: "
            message += detail["Message"]
            remedy = "Correct the cause; `slipway iam NAME --remote` prints the rights."
        if code is Code.BUILD_UNREACHABLE:
            remedy += " A build that was started goes on, and the next run joins it."
        raise UserError.of(code, message, remedy) from None
