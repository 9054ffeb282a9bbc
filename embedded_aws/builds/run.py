"""Takes one build from its source to its end, in a thread of its own."""

import json
import logging
import os
import secrets
import shutil
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from slipway.embedded_aws.builds.buildspec import (
    COMMAND,
    FAILED,
    PHASE,
    Buildspec,
    BuildspecError,
    read_buildspec,
    write_script,
)
from slipway.embedded_aws.builds.records import Build
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.iam.permissions import may
from slipway.embedded_aws.iam.s3_access import RoleAccess
from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.processes.logs import LogShipper, LogStream
from slipway.embedded_aws.processes.process import SupervisedProcess, start_program

logger = logging.getLogger(__name__)

# AWS documents no grace for a stopped build, so programs here get none.
_NO_GRACE_SECONDS = 0.0
_TIMED_OUT = ("BUILD_TIMED_OUT", "Build has timed out.")
_HIDDEN = "***"
_MESSAGE_CHARACTERS = 1024


class PhaseError(Exception):
    def __init__(self, status_code: str, message: str) -> None:
        super().__init__(message)
        self.context = (status_code, message[:_MESSAGE_CHARACTERS])


class _EndedError(Exception):
    """The build ends before its program did: the message is the build's status."""


@dataclass(frozen=True)
class BuildContext:
    """The objects that all builds share."""

    clients: LoopbackClients
    # Holds the builds' files, in one folder per build, which is removed with it.
    directory: Path
    logs: LogShipper
    time_scale: float


class BuildRun:
    """A build's program, from its start to its end."""

    def __init__(self, context: BuildContext, build: Build, on_end: Callable[[], None]) -> None:
        self._context = context
        self._build = build
        self._on_end = on_end
        self._role = build.project["serviceRole"]
        self._home = context.directory / secrets.token_hex(8)
        self._source = self._home / "src"
        self._mark = secrets.token_hex(16)
        self._log: LogStream | None = None
        self._hidden: list[str] = []
        self._failure = ("", "")
        self._process: SupervisedProcess | None = None
        self._stop_asked = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="build", daemon=True)

    def start(self) -> None:
        for phase in ("SUBMITTED", "QUEUED"):
            self._build.enter(phase)
            self._build.leave()
        self._build.enter("PROVISIONING")
        self._thread.start()

    def request_stop(self) -> None:
        """Ends the program at once; the build is then `STOPPED`."""
        self._stop_asked.set()
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Stops the build and waits; called when the embedded AWS ends."""
        self.request_stop()
        self._thread.join()

    def _run(self) -> None:
        build = self._build
        limit = build.project["timeoutInMinutes"] * 60 * self._context.time_scale
        try:
            status = self._work(time.monotonic() + limit)
        except _EndedError as ended:
            status = str(ended)
            if self._is_in_phase():
                build.leave(status, _TIMED_OUT if status == "TIMED_OUT" else ("", ""))
        except PhaseError as error:
            status = "FAILED"
            build.leave(status, error.context)
            self._say(f"Phase context status code: {error.context[0]} Message: {error.context[1]}")
        except Exception as error:
            logger.exception("build %s failed", build.identifier)
            status = "FAULT"
            build.leave(status, ("INTERNAL_ERROR", f"{type(error).__name__}: {error}"))
        for phase in (
            ("UPLOAD_ARTIFACTS", "FINALIZING") if status == "SUCCEEDED" else ("FINALIZING",)
        ):
            build.enter(phase)
            build.leave()
        if self._log is not None:
            self._context.logs.release(self._log)
        # Before the last status: nothing of the build is left for those who wait for that.
        shutil.rmtree(self._home, ignore_errors=True)
        build.end(status)
        logger.info("build %s is %s", build.identifier, status)
        self._on_end()

    def _work(self, deadline: float) -> str:
        """Returns the status that the build ends with."""
        build = self._build
        self._source.mkdir(parents=True)
        self._open_log()
        build.leave()
        build.enter("DOWNLOAD_SOURCE")
        try:
            buildspec = read_buildspec(build.project["source"].get("buildspec", ""))
        except BuildspecError as error:
            raise PhaseError("YAML_FILE_ERROR", str(error)) from None
        variables = self._variables(buildspec)
        self._download()
        build.leave()
        return self._execute(buildspec, variables, deadline)

    def _open_log(self) -> None:
        build = self._build
        group = f"arn:aws:logs:{build.region}:{ACCOUNT_ID}:log-group:{build.log_group}"
        stream = f"{group}:log-stream:{build.log_stream}"
        for action in ("logs:CreateLogStream", "logs:PutLogEvents"):
            if not may(self._role, action, stream):
                raise PhaseError(
                    "ACCESS_DENIED",
                    f"Service role {self._role} does not allow AWS CodeBuild to create Amazon "
                    f"CloudWatch Logs log streams for build {build.arn}. Error message: not "
                    f"authorized to perform: {action} on resource: {stream}",
                )
        name = build.log_stream.replace("/", "-")
        self._log = self._context.logs.open(
            region=build.region,
            group=build.log_group,
            stream=build.log_stream,
            file=self._context.directory.parent / "logs" / f"build-{name}.log",
        )

    def _say(self, line: str) -> None:
        if self._log is not None:
            self._log.write(
                f"[Container] {time.strftime('%Y/%m/%d %H:%M:%S', time.gmtime())} {line}"
            )

    def _variables(self, buildspec: Buildspec) -> dict[str, str]:
        """Returns the environment of the commands; the project's variables win."""
        build = self._build
        declared = {
            item["name"]: item["value"]
            for item in build.variables
            if item["name"] not in build.secret_references
        }
        for name, reference in build.secret_references.items():
            declared[name] = self._secret(reference)
            self._hidden.append(declared[name])
        own = (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))
        return {
            "PATH": os.pathsep.join(own),
            "HOME": str(self._home),
            "TMPDIR": str(self._home),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            # pip fetches nothing: the packages of this machine's Python are all there are.
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **buildspec.variables,
            **declared,
            "CI": "true",
            "CODEBUILD_BUILD_ARN": build.arn,
            "CODEBUILD_BUILD_ID": build.identifier,
            "CODEBUILD_BUILD_NUMBER": str(build.number),
            "CODEBUILD_LOG_PATH": build.log_stream,
            "CODEBUILD_SRC_DIR": str(self._source),
            "CODEBUILD_START_TIME": str(int(build.created.timestamp() * 1000)),
            "AWS_REGION": build.region,
            "AWS_DEFAULT_REGION": build.region,
            # Stands for the service role's credentials.
            **self._context.clients.connection.variables(),
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def _secret(self, reference: str) -> str:
        """Reads `SECRET` or `SECRET:KEY` from Secrets Manager as the build's role."""
        secret, key = reference, ""
        # An ARN has six colons of its own.
        parts = reference.split(":")
        own = 7 if reference.startswith("arn:") else 1
        if len(parts) > own:
            secret, key = ":".join(parts[:own]), parts[own]
        client = self._context.clients.client("secretsmanager", self._build.region)
        try:
            found = client.get_secret_value(SecretId=secret)
        except ClientError as error:
            detail = error.response["Error"]
            raise PhaseError(
                "CLIENT_ERROR",
                f"Secrets Manager Error Message: {detail['Code']}: {detail['Message']}",
            ) from None
        if not may(self._role, "secretsmanager:GetSecretValue", found["ARN"]):
            raise PhaseError(
                "CLIENT_ERROR",
                f"Secrets Manager Error Message: AccessDeniedException: {self._role} is not "
                "authorized to perform: secretsmanager:GetSecretValue on resource: "
                f"{found['ARN']} because no identity-based policy allows the "
                "secretsmanager:GetSecretValue action",
            )
        text: str = found["SecretString"]
        return str(json.loads(text)[key]) if key else text

    def _download(self) -> None:
        """Brings the source of type S3, a ZIP file, as the build's role."""
        source = self._build.project["source"]
        if source["type"] == "NO_SOURCE":
            return
        bucket, _, key = source["location"].removeprefix("arn:aws:s3:::").partition("/")
        access = RoleAccess(self._context.clients.client("s3", self._build.region), self._role)
        archive = self._home / "source.zip"
        try:
            with archive.open("wb") as file:
                shutil.copyfileobj(access.read(bucket, key), file)
            with zipfile.ZipFile(archive) as content:
                content.extractall(self._source)
        except (ClientError, BotoCoreError, zipfile.BadZipFile) as error:
            raise PhaseError(
                "CLIENT_ERROR", f"error while downloading key {key}, error: {error}"
            ) from None
        archive.unlink()

    def _execute(self, buildspec: Buildspec, variables: Mapping[str, str], deadline: float) -> str:
        for name, version in buildspec.runtimes.items():
            own = ".".join(map(str, sys.version_info[:3]))
            self._say(
                f"{name} {version} is asked for; {name} {own} of this machine takes its place"
            )
        commands = self._home / "commands"
        commands.mkdir()
        program = write_script(buildspec, commands, self._mark)
        with self._lock:
            if self._stop_asked.is_set():
                raise _EndedError("STOPPED")
            self._process = process = start_program(
                command=(buildspec.shell, str(program)),
                environment=variables,
                directory=self._source,
                on_line=self._on_line,
                grace_seconds=_NO_GRACE_SECONDS,
            )
        timed_out = not process.exited.wait(max(0.0, deadline - time.monotonic()))
        if timed_out:
            process.kill()
            process.exited.wait()
        if self._stop_asked.is_set():
            raise _EndedError("STOPPED")
        if timed_out:
            raise _EndedError("TIMED_OUT")
        if self._is_in_phase():
            # A command that ended the shell itself ended its phase with it.
            raise PhaseError(
                "COMMAND_EXECUTION_ERROR", f"The shell ended with exit status {process.exit_status}"
            )
        return "FAILED" if process.exit_status else "SUCCEEDED"

    def _is_in_phase(self) -> bool:
        return "endTime" not in self._build.phases[-1]

    def _on_line(self, line: str) -> None:
        if not line.startswith(f"{self._mark} "):
            if self._log is not None:
                self._log.write(self._masked(line))
            return
        _, kind, rest = line.split(" ", 2)
        if kind == PHASE:
            self._build.enter(rest.upper())
            self._say(f"Entering phase {rest.upper()}")
        elif kind == COMMAND:
            self._say(f"Running command {self._masked(rest)}")
        elif kind == FAILED:
            status, _, command = rest.partition(" ")
            self._failure = (
                "COMMAND_EXECUTION_ERROR",
                f"Error while executing command: {self._masked(command)}. "
                f"Reason: exit status {status}"[:_MESSAGE_CHARACTERS],
            )
        else:
            self._leave(rest)

    def _leave(self, rest: str) -> None:
        phase, _, code = rest.partition(" ")
        status = "SUCCEEDED" if code == "0" else "FAILED"
        context = ("", "") if code == "0" else self._failure
        self._build.leave(status, context)
        self._say(f"Phase complete: {phase.upper()} State: {status}")
        self._say(f"Phase context status code: {context[0]} Message: {context[1]}")

    def _masked(self, line: str) -> str:
        """Returns a line without the values that came from Secrets Manager."""
        for value in self._hidden:
            line = line.replace(value, _HIDDEN)
        return line
