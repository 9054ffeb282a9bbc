"""The Docker engine that builds and runs the images."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.installs import InstallError, UnavailableError, cache_directory

_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0
# Debian's package; the client of the same package speaks to it, and builds with BuildKit by itself.
_PACKAGE: Final = "docker.io"
_DAEMON: Final = "/usr/sbin/dockerd"
_CLIENT: Final = "/usr/bin/docker"
_LOG_LINES: Final = 10


@dataclass(frozen=True)
class Engine:
    """An engine that answers.

    Args:
        name: how results call it.
        client: the program that speaks to it.
        variables: what the client needs beside the user's variables.
    """

    name: str
    client: str
    variables: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Returns the variables of a process that runs the client."""
        return {**os.environ, **self.variables}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of the client; its output and its errors are one text."""
        return subprocess.run(  # noqa: S603
            [self.client, *arguments],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )

    def answer(self, *arguments: str) -> str:
        """Runs a command of the client; returns its output.

        Raises:
            InstallError: it failed; the message has its output.
        """
        done = self.run(*arguments)
        if done.returncode != 0:
            words = " ".join(arguments)
            raise InstallError(f"`docker {words}` ended with {done.returncode}:\n{done.stdout}")
        return done.stdout.strip()

    def has_image(self, name: str) -> bool:
        """Returns whether the engine has an image."""
        return self.run("image", "inspect", name).returncode == 0

    def label(self, name: str, label: str) -> str | None:
        """Returns the value of an image's label; None without the label or the image."""
        form = f'{{{{index .Config.Labels "{label}"}}}}'
        done = self.run("image", "inspect", "--format", form, name)
        return done.stdout.strip() or None if done.returncode == 0 else None

    def build(self, folder: Path, *options: str, tell: Callable[[str], None]) -> None:
        """Builds an image from a folder.

        Args:
            folder: the context.
            options: of `docker build`.
            tell: called with each line of the build.

        Raises:
            InstallError: the build failed; the message has its last lines.
        """
        lines = []
        with subprocess.Popen(  # noqa: S603
            [
                self.client,
                "build",
                "--platform=linux/amd64",
                "--network=host",
                *options,
                str(folder),
            ],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                tell(lines[-1])
        if process.returncode != 0:
            raise InstallError("\n".join([f"`docker build {folder}` failed:", *lines[-30:]]))


@contextlib.contextmanager
def open_engine(environ: Mapping[str, str] = os.environ) -> Iterator[Engine]:
    """Yields the machine's engine, or one of the project's own, which ends with the context.

    Args:
        environ: the user's variables: PATH, HOME or XDG_CACHE_HOME.

    Raises:
        UnavailableError: there is no engine, and none can be started here.
        InstallError: an engine that should start does not.
    """
    if (found := _machines_engine(environ)) is not None:
        yield found
        return
    _install_daemon()
    directory = cache_directory(environ) / "images"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        # Two daemons cannot share one directory of data: the second command waits.
        fcntl.flock(lock, fcntl.LOCK_EX)
        with _own_engine(directory) as engine:
            yield engine


def _machines_engine(environ: Mapping[str, str]) -> Engine | None:
    client = shutil.which("docker", path=environ.get("PATH"))
    if client is None:
        return None
    found = Engine("docker", client, {"DOCKER_BUILDKIT": "1"})
    return found if found.run("info").returncode == 0 else None


def _install_daemon() -> None:
    if Path(_DAEMON).exists():
        return
    install("docker engine", _PACKAGE)


def install(purpose: str, *packages: str) -> None:
    """Installs packages of Debian.

    Args:
        purpose: what they are for, in the message of an error.
        packages: their names.

    Raises:
        UnavailableError: this is no Debian, the user is not root, or apt fails.
    """
    words = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    command = " ".join(words)
    if shutil.which("apt-get") is None:
        raise UnavailableError(f"There is no {purpose}, and no apt-get to install {packages[0]}.")
    if os.geteuid() != 0:
        raise UnavailableError(f"There is no {purpose}. Run `sudo {command}`, as root.")
    done = _apt(*words)
    if done.returncode != 0:
        # The lists of packages may be old.
        _apt("apt-get", "update")
        done = _apt(*words)
    if done.returncode != 0:
        raise UnavailableError(f"`{command}` failed:\n{_last(done.stderr)}")


def _apt(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        words,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@contextlib.contextmanager
def _own_engine(directory: Path) -> Iterator[Engine]:
    with tempfile.TemporaryDirectory(prefix="slipway-docker-") as temporary:
        # The names of sockets are short.
        run = Path(temporary)
        host = f"unix://{run / 'socket'}"
        log = run / "log"
        with log.open("w") as output:
            daemon = subprocess.Popen(  # noqa: S603
                [_DAEMON, *_daemon_options(directory / "docker", run, host)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C is for the command, which ends the daemon in order.
                start_new_session=True,
            )
        variables = {"DOCKER_HOST": host, "DOCKER_BUILDKIT": "1"}
        try:
            engine = Engine("a dockerd of Debian's", _CLIENT, variables)
            _await(engine, daemon, log)
            yield engine
        finally:
            daemon.terminate()
            try:
                daemon.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


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


def _await(engine: Engine, daemon: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while True:
        if engine.run("info").returncode == 0:
            return
        if daemon.poll() is not None or time.monotonic() > until:
            # Namespaces, cgroups or overlayfs may be denied to a root of a container.
            raise UnavailableError(f"dockerd does not start here:\n{_last(log.read_text())}")
        time.sleep(0.1)


def _last(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_LOG_LINES:])
