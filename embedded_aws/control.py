"""Starts, describes and stops the embedded AWS as a background process of one project.

Its lock tells whether it runs (embedded_aws/lock.py). Its state is not kept: the next start begins
with an empty account.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from slipway.embedded_aws.containers.engine import NoEngineError
from slipway.embedded_aws.errors import LocalAwsError
from slipway.embedded_aws.identity import MINUTE_PATH, SERVABLE_PATH, STATUS_PATH, Connection
from slipway.embedded_aws.lock import LOCK_FILE, await_unlocked, holder, is_locked
from slipway.embedded_aws.reported_refusals import ReportedRefusal
from slipway.image_sources import link_sources

DEFAULT_PORT = 4566
DEFAULT_REGION = "us-east-1"
_START_SECONDS = 60.0
# The containers' 30 seconds from SIGTERM to SIGKILL, plus the server's own shutdown.
_STOP_SECONDS = 45.0
_ANSWER_SECONDS = 5.0
# A minute's instances and copies are awaited for a minute, and its alarms are evaluated.
_MINUTE_ANSWER_SECONDS = 120.0
_LOCK_SECONDS = 1.0
_POLL_SECONDS = 0.02
_LOG_FILE = "server.log"
_LOG_CHARACTERS = 2000


@dataclass(frozen=True)
class LocalState:
    """A running embedded AWS, with the options of `start` in alphabetical order.

    Without a container engine, endpoints are processes.
    """

    pid: int
    port: int
    url: str
    started_at: datetime
    secret_access_key: str = field(repr=False)
    engine: str | None = None
    refused: tuple[ReportedRefusal, ...] = ()
    without_capacity: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()

    @property
    def connection(self) -> Connection:
        return Connection(self.url, self.secret_access_key)


@dataclass(frozen=True)
class EndpointSummary:
    region: str
    name: str
    status: str


@dataclass(frozen=True)
class LocalStatus:
    """The status that a running embedded AWS reports.

    Attributes:
        ahead_seconds: how far the account's clock is ahead of the machine's.
        endpoints: endpoints of all regions, oldest first.
    """

    state: LocalState
    uptime_seconds: float
    ahead_seconds: float
    endpoints: tuple[EndpointSummary, ...]
    log_file: Path


@dataclass(frozen=True)
class AccountTime:
    """The time in the account of a running embedded AWS."""

    now: datetime
    ahead_seconds: float


def start(
    project_directory: Path,
    port: int = DEFAULT_PORT,
    *,
    containers: bool = False,
    refuse: Collection[ReportedRefusal] = (),
    without_capacity: Collection[str] = (),
    record: Collection[str] = (),
) -> LocalState:
    """Starts the embedded AWS of a project, or returns the running one, whatever its port.

    Its files lie in `.slipway/local` of the project. A running one must have the options that are
    asked for, and may have more.

    Args:
        project_directory: the project.
        port: loopback port of a new server; 0 lets the operating system choose.
        containers: whether endpoints must run in their images.
        refuse: refusals of public reports that it must make.
        without_capacity: instance types that it must have no capacity of.
        record: patterns of resource types that it must record without making any.

    Raises:
        NoEngineError: endpoints must run in their images, and there is no container engine.
        LocalAwsError: it does not start, for example because the port is taken.
    """
    directory = _directory(project_directory)
    options = [
        *(["--containers"] if containers else []),
        *(f"--refuse {rule}" for rule in sorted(refuse)),
        *(f"--without-capacity {each}" for each in sorted(without_capacity)),
        *(f"--record {each}" for each in sorted(record)),
    ]
    running = _await_state(directory)
    if running is not None:
        return _as_asked(running, options)
    _require_free(port)
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    project = project_directory.resolve()
    sources = link_sources(project, directory / "sources")
    ready_file = directory / "state.json"
    # The file is left of a killed server. In a container the next process may well get the same id.
    stale = _read_state(directory)
    log_file = directory / _LOG_FILE
    with log_file.open("ab") as log:
        begun = log.tell()
        process = subprocess.Popen(  # noqa: S603  # this interpreter, this package
            [
                *(sys.executable, "-m", "slipway.embedded_aws", "--port", str(port)),
                *("--directory", str(directory), "--ready-file", str(ready_file)),
                *("--project", str(project), "--sources", str(sources)),
                *(part for option in options for part in option.split()),
            ],
            env=_server_environment(),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    # Reaps the server if it ends while this process still runs; nothing else here waits for it.
    threading.Thread(target=process.wait, name="reaper", daemon=True).start()
    deadline = time.monotonic() + _START_SECONDS
    while (state := _read_state(directory)) in (None, stale) or state.pid != process.pid:
        time.sleep(_POLL_SECONDS)
        if process.poll() is not None:
            faster = _await_state(directory)
            if faster is not None:
                return _as_asked(faster, options)
            told = log_file.read_bytes()[begun:].decode(errors="replace").rstrip()
            if process.returncode == os.EX_UNAVAILABLE:
                raise NoEngineError(told)
            raise LocalAwsError(
                f"The embedded AWS ended at its start. Its log, {log_file}, ends with:\n"
                f"{told[-_LOG_CHARACTERS:]}"
            )
        if time.monotonic() > deadline:
            process.kill()
            raise LocalAwsError(
                f"The embedded AWS did not answer within {_START_SECONDS:g} seconds. "
                f"Its log is {log_file}."
            )
    return state


def _as_asked(running: LocalState, options: Collection[str]) -> LocalState:
    if "--containers" in options and running.engine is None:
        raise LocalAwsError(
            f"The embedded AWS runs already (process {running.pid}), and its endpoints run as "
            "processes. Run `slipway local stop`, then start it with `--containers`. What is "
            "deployed and published there is lost."
        )
    has = {
        "--containers",
        *(f"--refuse {rule}" for rule in running.refused),
        *(f"--without-capacity {each}" for each in running.without_capacity),
        *(f"--record {each}" for each in running.recorded),
    }
    missing = [option for option in options if option not in has]
    if missing:
        raise LocalAwsError(
            f"The embedded AWS runs already (process {running.pid}), without "
            f"`{' '.join(missing)}`. Run `slipway local stop`, then start it with the option. What "
            "is deployed and published there is lost."
        )
    return running


def running(project_directory: Path) -> LocalState | None:
    """Returns the running embedded AWS of a project without asking it; None if none runs."""
    directory = _directory(project_directory)
    return _read_state(directory) if is_locked(directory) else None


def ended_unasked(project_directory: Path) -> LocalState | None:
    """Returns the embedded AWS of a project that ended without `stop`, for example when killed.

    Its account is gone. It is remembered until the next `start` or `stop`. None if one runs, or if
    the last one was stopped.
    """
    directory = _directory(project_directory)
    return None if is_locked(directory) else _read_state(directory)


def stop(project_directory: Path) -> bool:
    """Stops the embedded AWS of a project, with every container; its account is lost.

    Returns whether one was running. Raises LocalAwsError if its process id is unknown.
    """
    directory = _directory(project_directory)
    state = _await_state(directory)
    if state is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.pid, signal.SIGTERM)
        if not await_unlocked(directory, _STOP_SECONDS):
            # The containers' supervisors see the end of their pipes and stop the containers.
            with contextlib.suppress(ProcessLookupError):
                os.kill(state.pid, signal.SIGKILL)
            await_unlocked(directory, _STOP_SECONDS)
    (directory / "state.json").unlink(missing_ok=True)
    return state is not None


def status(project_directory: Path) -> LocalStatus | None:
    """Describes the embedded AWS of a project, or returns None when it does not run.

    Raises LocalAwsError if its process lives but does not answer.
    """
    directory = _directory(project_directory)
    state = _await_state(directory)
    described = _ask(directory, STATUS_PATH)
    if state is None or described is None:
        return None
    return LocalStatus(
        state=state,
        uptime_seconds=(datetime.now(UTC) - state.started_at).total_seconds(),
        ahead_seconds=described["ahead_seconds"],
        endpoints=tuple(EndpointSummary(**endpoint) for endpoint in described["endpoints"]),
        log_file=directory / _LOG_FILE,
    )


def why_not_served(project_directory: Path, image: str, backends: Sequence[str]) -> str | None:
    """Returns why the embedded AWS of a project cannot serve a model; None if it can.

    Without a running embedded AWS there is no reason. The back ends are Triton's. Raises
    LocalAwsError if its process lives but does not answer.
    """
    query = urllib.parse.urlencode({"image": image, "backend": backends}, doseq=True)
    answer = _ask(_directory(project_directory), SERVABLE_PATH, query=query)
    return None if answer is None else answer["reason"]


def pass_minute(project_directory: Path) -> AccountTime | None:
    """Lets the present minute end in the account of a project's embedded AWS.

    Returns None when it does not run. Raises LocalAwsError if its process lives but does not
    answer.
    """
    passed = _ask(_directory(project_directory), MINUTE_PATH, is_change=True)
    if passed is None:
        return None
    return AccountTime(datetime.fromtimestamp(passed["now_seconds"], UTC), passed["ahead_seconds"])


def environment(
    state: LocalState,
    *,
    region: str = DEFAULT_REGION,
    environ: Mapping[str, str] = os.environ,
) -> dict[str, str | None]:
    """Returns the variables that point AWS CLI, SDKs, s5cmd and CDK CLI at the embedded AWS.

    Every other `AWS_` variable of the user's environment is None, which means unset, so that the
    user's profiles, roles and endpoints have no effect.
    """
    # Points away from files with credentials or a default profile: if unset, ~/.aws would be read.
    chosen: dict[str, str | None] = {
        **state.connection.variables(),
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    always_unset = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")
    theirs = [name for name in sorted(environ) if name.startswith("AWS_")]
    for name in (*always_unset, *theirs):
        chosen.setdefault(name, None)
    # The user's proxy knows nothing of this machine's loopback address.
    if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in environ):
        for name in ("NO_PROXY", "no_proxy"):
            hosts = [host for host in environ.get(name, "").split(",") if host]
            chosen[name] = ",".join(dict.fromkeys([*hosts, "localhost", "127.0.0.1"]))
    return chosen


def _ask(
    directory: Path, path: str, *, query: str = "", is_change: bool = False
) -> dict[str, Any] | None:
    """Returns the answer to a request of its own; None if it does not run, or ends meanwhile."""
    state = _await_state(directory)
    if state is None:
        return None
    request = urllib.request.Request(  # noqa: S310  # loopback
        f"{state.url}{path}?{query}",
        data=b"" if is_change else None,
        headers={"Authorization": state.connection.authorization(path)},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    limit_seconds = _MINUTE_ANSWER_SECONDS if is_change else _ANSWER_SECONDS
    try:
        with opener.open(request, timeout=limit_seconds) as answer:
            found: dict[str, Any] = json.load(answer)
    except OSError as error:
        # A process that is ending closes its port a moment before it releases the lock.
        if await_unlocked(directory, _LOCK_SECONDS):
            return None
        raise LocalAwsError(
            f"The embedded AWS (process {state.pid}) does not answer at {state.url}: {error}. "
            f"Its log is {directory / _LOG_FILE}; `slipway local stop` ends it."
        ) from error
    return found


def _directory(project_directory: Path) -> Path:
    return project_directory.resolve() / ".slipway" / "local"


def _read_state(directory: Path) -> LocalState | None:
    try:
        content = json.loads((directory / "state.json").read_text())
        content["started_at"] = datetime.fromisoformat(content["started_at"])
        content["refused"] = map(ReportedRefusal, content["refused"])
        for name in ("refused", "without_capacity", "recorded"):
            content[name] = tuple(content[name])
        # A server of another version may write further members.
        members = {field.name for field in fields(LocalState)}
        return LocalState(**{name: content[name] for name in content.keys() & members})
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        # A power failure may leave the file empty; a running server writes its own.
        return None


def _await_state(directory: Path) -> LocalState | None:
    """Returns the state of the process that holds the lock, once it answers, or None."""
    deadline = time.monotonic() + _START_SECONDS
    while is_locked(directory):
        # The file may be left of an earlier process; the lock names the live one.
        state = _read_state(directory)
        if state is not None and str(state.pid) == holder(directory):
            return state
        if time.monotonic() > deadline:
            raise LocalAwsError(
                f"A process holds {directory / LOCK_FILE} but says nothing of itself. "
                "Find it with `fuser` or `lsof` and end it."
            )
        time.sleep(_POLL_SECONDS)
    return None


def _require_free(port: int) -> None:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise LocalAwsError(
            f"Port {port} cannot be used: {os.strerror(error.errno or 0)}. "
            "Stop the program that has it, or choose another port: "
            f"`slipway local start --port {port + 1}`."
        ) from error


def _server_environment() -> dict[str, str]:
    """Returns the user's environment without variables that could lead to an AWS account."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {
        **kept,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
