"""Finds a container engine on this machine, or starts one.

Three engines are tried in this order:

1. Docker, if `docker info` answers.
2. A dockerd of the project's own, which root can start. Its data are in the user's cache. It ends
   when the last process that uses it ends.
3. Podman, which needs no daemon, where no dockerd starts.

Containers have no network, so that an engine changes nothing of the machine's network.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from slipway.embedded_aws.cache import cache_directory
from slipway.embedded_aws.containers.engine import Engine, NoEngineError

KINDS: Final = ("docker", "dockerd", "podman")
PODMAN: Final = "/usr/bin/podman"

_START_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_DAEMON: Final = "/usr/sbin/dockerd"
_CLIENT: Final = "/usr/bin/docker"
_RUN: Final = Path("/run")
_KEEPER: Final = Path(__file__).with_name("daemon.py")
_LOG_LINES: Final = 10
# The packages of Debian that bring an engine.
_DOCKER_PACKAGES: Final = ("docker.io",)
_PODMAN_PACKAGES: Final = ("podman", "runc")


Install = Callable[[Sequence[str]], None]


def engine_directory(environ: Mapping[str, str]) -> Path:
    """Returns the directory in the user's cache that has the data of the project's own engine."""
    cache = cache_directory(environ)
    if cache is None:
        raise NoEngineError("Set HOME or XDG_CACHE_HOME: neither says where images are kept.")
    return cache / "images"


def install_nothing(packages: Sequence[str]) -> None:
    raise NoEngineError(f"{packages[0]} is not installed.")


@contextlib.contextmanager
def open_engine(
    directory: Path,
    environ: Mapping[str, str] = os.environ,
    install: Install = install_nothing,
) -> Iterator[Engine]:
    """Yields the machine's engine, or one of the project's own, or raises NoEngineError.

    Args:
        directory: the data of an engine of the project's own, in the user's cache.
        environ: the user's variables: PATH, and perhaps the kind of the engine.
        install: installs packages of Debian, or raises NoEngineError.
    """
    reasons = []
    for kind in _kinds(environ):
        with contextlib.ExitStack() as stack:
            try:
                if kind == "docker":
                    engine = _machines_engine(environ)
                elif kind == "dockerd":
                    engine = stack.enter_context(_own_engine(directory, install))
                else:
                    engine = _podman(directory, install)
            except NoEngineError as error:
                reasons.append(f"- {kind}: {error}")
                continue
            yield engine
            return
    raise NoEngineError("There is no container engine here:\n" + "\n".join(reasons))


def _kinds(environ: Mapping[str, str]) -> Sequence[str]:
    chosen = environ.get("SLIPWAY_CONTAINER_ENGINE")
    if not chosen:
        return KINDS
    if chosen not in KINDS:
        known = ", ".join(KINDS)
        raise NoEngineError(f"SLIPWAY_CONTAINER_ENGINE is {chosen!r}; it can be one of {known}.")
    return (chosen,)


def _machines_engine(environ: Mapping[str, str]) -> Engine:
    client = shutil.which("docker", path=environ.get("PATH"))
    if client is None:
        raise NoEngineError("it is not on the PATH.")
    found = Engine("docker", (client,), {"DOCKER_BUILDKIT": "1"})
    told = found.run("info")
    if told.returncode != 0:
        raise NoEngineError(f"`docker info` does not answer: {_last(told.stdout, 1)}")
    return found


@contextlib.contextmanager
def _own_engine(directory: Path, install: Install) -> Iterator[Engine]:
    if os.geteuid() != 0:
        raise NoEngineError("only root can start it.")
    if not Path(_DAEMON).exists():
        install(_DOCKER_PACKAGES)
    run = _run_directory(directory)
    host = f"unix://{run / 'socket'}"
    engine = Engine(
        "a dockerd of Debian's", (_CLIENT,), {"DOCKER_HOST": host, "DOCKER_BUILDKIT": "1"}
    )
    with (run / "users").open("a") as users:
        # Waits while an earlier dockerd ends.
        fcntl.flock(users, fcntl.LOCK_SH)
        with (run / "starting").open("a") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if engine.run("info").returncode != 0:
                _start_daemon(engine, directory / "docker", run, host)
        yield engine


def _start_daemon(engine: Engine, data: Path, run: Path, host: str) -> None:
    log = run / "log"
    with log.open("w") as output:
        keeper = subprocess.Popen(  # noqa: S603  # this interpreter, a program of this package
            [
                *(sys.executable, "-I", "-S", str(_KEEPER), str(run / "users")),
                *(_DAEMON, *_daemon_options(data, run, host)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Ctrl-C is for the command, whose end ends the daemon in order.
            start_new_session=True,
        )
    # Reaps it if it ends while this process still runs.
    threading.Thread(target=keeper.wait, name="daemon-reaper", daemon=True).start()
    until = time.monotonic() + _START_SECONDS
    while engine.run("info").returncode != 0:
        if keeper.poll() is not None or time.monotonic() > until:
            # Namespaces, cgroups or overlayfs may be denied to a root of a container.
            told = _last(log.read_text("utf-8", "replace"), _LOG_LINES)
            raise NoEngineError(f"it does not start here:\n{told}")
        time.sleep(_POLL_SECONDS)


def _daemon_options(data: Path, run: Path, host: str) -> Sequence[str]:
    return (
        f"--data-root={data}",
        f"--exec-root={run / 'exec'}",
        f"--pidfile={run / 'pid'}",
        f"--host={host}",
        # Containers have the machine's network or none, so nothing of the machine's is changed.
        "--iptables=false",
        "--ip6tables=false",
        "--bridge=none",
        "--storage-driver=overlay2",
        "--default-ulimit=nofile=20000:20000",
    )


def _podman(directory: Path, install: Install) -> Engine:
    if not Path(PODMAN).exists():
        install(_PODMAN_PACKAGES)
    command = (
        PODMAN,
        f"--root={directory / 'podman'}",
        f"--runroot={_run_directory(directory) / 'podman'}",
        # systemd may be missing, and crun fails where both versions of cgroups are mounted.
        "--cgroup-manager=cgroupfs",
        "--runtime=runc",
    )
    engine = Engine(
        "podman",
        command,
        # A build without a mount namespace of its own, which a container may not make.
        build_options=("--isolation=chroot", "--layers", "--format=docker"),
        # Podman's own limits are above those that a root of a container has.
        run_options=("--ulimit=nofile=20000:20000", "--ulimit=nproc=4096:4096"),
    )
    told = engine.run("info")
    if told.returncode != 0:
        raise NoEngineError(f"`podman info` does not answer: {_last(told.stdout, 1)}")
    return engine


def _run_directory(directory: Path) -> Path:
    """Returns the directory of an engine's sockets, whose names must be short."""
    directory.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:12]
    # Of another user than root: in the user's own part of it.
    user = os.geteuid()
    root = _RUN if user == 0 else _RUN / "user" / str(user)
    run = root / f"slipway-{name}"
    try:
        run.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise NoEngineError(f"{run} cannot be made: {error.strerror}.") from error
    return run


def _last(text: str, lines: int) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
