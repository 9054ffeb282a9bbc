"""CodeBuild's control plane for builds; moto's keeps the projects."""

from __future__ import annotations

import copy
import shutil
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moto.codebuild.models import codebuild_backends

from slipway.embedded_aws.api import Answer, ApiError, Caller, Operation, Parameters, ServiceApi
from slipway.embedded_aws.builds.records import Build
from slipway.embedded_aws.builds.run import BuildContext, BuildRun
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.iam.trust import is_assumable
from slipway.embedded_aws.processes.logs import LogShipper

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

INVALID, NOT_FOUND = "InvalidInputException", "ResourceNotFoundException"
_PRINCIPAL = "codebuild.amazonaws.com"
# Members of StartBuild that have an effect here; any other is refused by name.
_APPLIED = {
    "buildspecOverride",
    "computeTypeOverride",
    "environmentVariablesOverride",
    "idempotencyToken",
    "projectName",
    "sourceLocationOverride",
    "sourceTypeOverride",
    "timeoutInMinutesOverride",
}
_SOURCES = ("NO_SOURCE", "S3")
_VARIABLE_TYPES = ("PLAINTEXT", "SECRETS_MANAGER")
# https://docs.aws.amazon.com/codebuild/latest/APIReference/API_StartBuild.html
_TOKEN_SECONDS = 300
_PAGE = 100
# CreateProject's documentation.
_DEFAULT_TIMEOUT_MINUTES, _DEFAULT_QUEUED_MINUTES = 60, 480


class Builds:
    """The builds of every project; each runs in its own thread and ends with this object."""

    def __init__(self, clients: LoopbackClients, directory: Path, *, time_scale: float) -> None:
        # Left by a killed server: nothing refers to it any more.
        shutil.rmtree(directory / "builds", ignore_errors=True)
        self._clients = clients
        self._logs = LogShipper(clients)
        self._context = BuildContext(clients, directory / "builds", self._logs, time_scale)
        self._builds: dict[str, Build] = {}
        self._runs: dict[str, BuildRun] = {}
        self._tokens: dict[tuple[str, str], tuple[float, Mapping[str, Any], Build]] = {}
        self._lock = threading.Lock()
        self._closing = False
        operations: Mapping[str, Operation] = {
            "BatchGetBuilds": self.get,
            "ListBuilds": self.list_all,
            "ListBuildsForProject": self.list_for_project,
            "StartBuild": self.create,
            "StopBuild": self.stop,
        }
        self._operations = frozenset(operations)
        self._api = ServiceApi("codebuild", operations, validation_code=INVALID)

    def in_front_of(self, moto: WSGIApplication) -> WSGIApplication:
        """Returns an application that answers for builds, and leaves everything else to moto."""

        def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            operation = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
            answers = self._api if operation in self._operations else moto
            return answers(environ, start_response)

        return application

    def create(self, caller: Caller, parameters: Parameters) -> Answer:
        name = parameters["projectName"]
        project = _project(caller, name)
        refused = sorted(set(parameters) - _APPLIED)
        if refused:
            raise ApiError(
                INVALID,
                f"The embedded AWS does not emulate {', '.join(refused)} of StartBuild. "
                "docs/embedded-aws/services.md lists what it does.",
            )
        merged = _merged(project, parameters)
        _check(merged)
        role, source = merged["serviceRole"], f"project/{name}"
        if not is_assumable(self._clients, caller, role, _PRINCIPAL, source):
            raise ApiError(
                INVALID, f"CodeBuild is not authorized to perform: sts:AssumeRole on {role}"
            )
        with self._lock:
            if self._closing:
                raise ApiError(INVALID, "The embedded AWS is being stopped.")
            if (same := self._same_token(name, parameters)) is not None:
                return {"build": same.describe()}
            build = self._new_build(caller, name, merged)
            run = BuildRun(self._context, build, lambda: self._forget(build.identifier))
            self._builds[build.identifier] = build
            self._runs[build.identifier] = run
            if token := parameters.get("idempotencyToken"):
                self._tokens[name, token] = (time.monotonic(), parameters, build)
            run.start()
        return {"build": build.describe()}

    def get(self, _caller: Caller, parameters: Parameters) -> Answer:
        wanted = [each.rpartition(":build/")[2] for each in parameters["ids"]]
        with self._lock:
            found = [self._builds[each] for each in wanted if each in self._builds]
            missing = [each for each in wanted if each not in self._builds]
        return {"builds": [build.describe() for build in found], "buildsNotFound": missing}

    def list_all(self, caller: Caller, parameters: Parameters) -> Answer:
        return self._page(caller, parameters, None)

    def list_for_project(self, caller: Caller, parameters: Parameters) -> Answer:
        _project(caller, parameters["projectName"])
        return self._page(caller, parameters, parameters["projectName"])

    def stop(self, _caller: Caller, parameters: Parameters) -> Answer:
        identifier = parameters["id"].rpartition(":build/")[2]
        with self._lock:
            build, run = self._builds.get(identifier), self._runs.get(identifier)
        if build is None:
            raise ApiError(NOT_FOUND, f"Build {parameters['id']} does not exist")
        if run is not None:
            run.request_stop()
        return {"build": build.describe()}

    def close(self) -> None:
        with self._lock:
            self._closing = True
            runs = list(self._runs.values())
        for run in runs:
            run.close()
        self._logs.close()

    def _new_build(self, caller: Caller, name: str, project: Mapping[str, Any]) -> Build:
        uid = str(uuid.uuid4())
        logs = project.get("logsConfig", {}).get("cloudWatchLogs", {})
        stream = "/".join(part for part in (logs.get("streamName"), uid) if part)
        earlier = [each for each in self._builds.values() if each.project_name == name]
        return Build(
            region=caller.region,
            identifier=f"{name}:{uid}",
            arn=f"arn:aws:codebuild:{caller.region}:{caller.account_id}:build/{name}:{uid}",
            number=len(earlier) + 1,
            project=project,
            log_group=logs.get("groupName") or f"/aws/codebuild/{name}",
            log_stream=stream,
        )

    def _same_token(self, name: str, parameters: Mapping[str, Any]) -> Build | None:
        known = self._tokens.get((name, parameters.get("idempotencyToken", "")))
        if known is None or time.monotonic() - known[0] > _TOKEN_SECONDS:
            return None
        if known[1] != parameters:
            raise ApiError(
                INVALID, "The idempotency token was used with other parameters: parameter mismatch."
            )
        return known[2]

    def _page(self, caller: Caller, parameters: Parameters, name: str | None) -> Answer:
        with self._lock:
            found = [
                build.identifier
                for build in self._builds.values()
                if build.region == caller.region and name in (None, build.project_name)
            ]
        if parameters.get("sortOrder", "DESCENDING") == "DESCENDING":
            found.reverse()
        token = parameters.get("nextToken", "0")
        if not token.isdecimal():
            raise ApiError(INVALID, "Invalid nextToken.")
        end = int(token) + _PAGE
        more = {"nextToken": str(end)} if end < len(found) else {}
        return {"ids": found[int(token) : end], **more}

    def _forget(self, identifier: str) -> None:
        with self._lock:
            self._runs.pop(identifier, None)


def _project(caller: Caller, name: str) -> Mapping[str, Any]:
    project = codebuild_backends[caller.account_id][caller.region].codebuild_projects.get(name)
    if project is None:
        arn = f"arn:aws:codebuild:{caller.region}:{caller.account_id}:project/{name}"
        raise ApiError(NOT_FOUND, f"Project cannot be found: {arn}")
    found: Mapping[str, Any] = project.project_metadata
    return found


def _merged(project: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the project with the overrides of a request."""
    merged = copy.deepcopy(dict(project))
    source, environment = merged["source"], merged["environment"]
    for member, target, key in (
        ("sourceTypeOverride", source, "type"),
        ("sourceLocationOverride", source, "location"),
        ("buildspecOverride", source, "buildspec"),
        ("computeTypeOverride", environment, "computeType"),
        ("timeoutInMinutesOverride", merged, "timeoutInMinutes"),
    ):
        if member in parameters:
            target[key] = parameters[member]
    variables = {item["name"]: item for item in environment.get("environmentVariables") or ()}
    for item in parameters.get("environmentVariablesOverride", ()):
        variables[item["name"]] = dict(item)
    environment["environmentVariables"] = list(variables.values())
    merged["timeoutInMinutes"] = merged["timeoutInMinutes"] or _DEFAULT_TIMEOUT_MINUTES
    merged["queuedTimeoutInMinutes"] = merged["queuedTimeoutInMinutes"] or _DEFAULT_QUEUED_MINUTES
    return merged


def _check(project: Mapping[str, Any]) -> None:
    """Refuses a build that cannot run here."""
    refused = []
    if (kind := project["source"]["type"]) not in _SOURCES:
        refused.append(f"sources of type {kind}")
    if (kind := project["environment"]["type"]) != "LINUX_CONTAINER":
        refused.append(f"environments of type {kind}")
    if (kind := project["artifacts"]["type"]) != "NO_ARTIFACTS":
        refused.append(f"artifacts of type {kind}")
    kinds = {
        item.get("type", "PLAINTEXT") for item in project["environment"]["environmentVariables"]
    }
    refused += [f"variables of type {kind}" for kind in sorted(kinds - {*_VARIABLE_TYPES})]
    if project["environment"].get("privilegedMode"):
        refused.append("privileged mode, in which builds run Docker")
    if refused:
        raise ApiError(
            INVALID,
            f"The embedded AWS does not emulate {', '.join(refused)} of a build. "
            "docs/embedded-aws/services.md lists what it does.",
        )
