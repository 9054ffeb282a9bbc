"""A container engine, by its command line: Docker's, or Podman's, which takes the same commands."""

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slipway.embedded_aws.errors import LocalAwsError


class EngineError(LocalAwsError):
    """The engine cannot do what it was asked; the message has its output."""


class NoEngineError(EngineError):
    """This machine has no engine, and none can be started."""


@dataclass(frozen=True)
class Engine:
    """An engine that answers.

    Args:
        name: how results call it.
        command: the program that speaks to it, and the options before every command.
        variables: what the program needs beside the user's variables.
        build_options: of every build.
        run_options: of every container.
    """

    name: str
    command: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    build_options: tuple[str, ...] = ()
    run_options: tuple[str, ...] = ()

    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables}

    def words(self, command: str, *arguments: str) -> list[str]:
        """Returns the words of a command of the client, with the options that this engine needs."""
        own: tuple[str, ...] = ()
        if command == "build":
            own = self.build_options
        elif command in ("create", "run"):
            own = self.run_options
        return [*self.command, command, *own, *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of the client; its output and its errors are one text."""
        return subprocess.run(  # noqa: S603  # the client was found by `opening`
            self.words(*arguments),
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )

    def answer(self, *arguments: str) -> str:
        """Runs a command of the client; returns its output, or raises EngineError with it."""
        done = self.run(*arguments)
        if done.returncode != 0:
            words = " ".join([Path(self.command[0]).name, *arguments])
            raise EngineError(f"`{words}` ended with {done.returncode}:\n{done.stdout}")
        return done.stdout.strip()

    def has_image(self, name: str) -> bool:
        return self.run("image", "inspect", name).returncode == 0

    def label(self, name: str, label: str) -> str | None:
        """Returns the value of an image's label; None without the label or the image."""
        form = f'{{{{index .Config.Labels "{label}"}}}}'
        done = self.run("image", "inspect", "--format", form, name)
        return done.stdout.strip() or None if done.returncode == 0 else None

    def build(self, folder: Path, *options: str, tell: Callable[[str], None]) -> None:
        """Builds an image from a folder, with options of `docker build`, and tells each line.

        Raises EngineError with the build's last lines.
        """
        lines = []
        platform = ("--platform=linux/amd64", "--network=host")
        with subprocess.Popen(  # noqa: S603  # as in `run`
            self.words("build", *platform, *options, str(folder)),
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
            client = Path(self.command[0]).name
            raise EngineError("\n".join([f"`{client} build {folder}` failed:", *lines[-30:]]))
