"""The files of a project on disk: environments, configs, locks and measurements."""

import contextlib
import fnmatch
import functools
import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from slipway.codes.code import Code
from slipway.config.adapters import base_of
from slipway.config.environment_file import load_defaults
from slipway.config.environments import Environment
from slipway.config.load import (
    ConfigFile,
    LoadedConfig,
    config_files,
    config_for,
    environment_names,
    load_environment,
    read_config,
)
from slipway.config.names import CONFIG_DIRECTORY, ENVIRONMENTS_FILE
from slipway.errors import Kind, Problem, UserError, did_you_mean
from slipway.lock_file import read_lock, read_measurement
from slipway.planning.adapters import adapter_as_base, invalid_base, unknown_base
from slipway.planning.lock import Lock
from slipway.sizing.measured import Measurement

# Names of the fields that refer to a host or a base. A file without these bytes refers to none.
_NAMES_HOST = (b"endpoint_of", b"adapter_of")


def names_host(text: bytes) -> bool:
    return any(word in text for word in _NAMES_HOST)


@dataclass(frozen=True)
class ProjectFiles:
    """The folder with environments.yaml and model_configs/."""

    root: Path

    @classmethod
    def find(cls, start: Path) -> Self:
        """Finds the project that a folder belongs to, as git does: upwards; raises `UserError`."""
        for folder in (start, *start.parents):
            if (folder / ENVIRONMENTS_FILE).is_file():
                return cls(folder)
            other = (folder / ENVIRONMENTS_FILE).with_suffix(".yml")
            if other.is_file() and (folder / CONFIG_DIRECTORY).is_dir():
                raise UserError.of(
                    Code.NO_PROJECT,
                    f"{other} is not read: the file's name is {ENVIRONMENTS_FILE}",
                    f"Rename it to {ENVIRONMENTS_FILE}.",
                )
        raise UserError.of(
            Code.NO_PROJECT,
            f"no Slipway project here: neither {start} nor a folder above has {ENVIRONMENTS_FILE}",
            "Run the command inside a project, or start one with `slipway new DIRECTORY`.",
        )

    @functools.cached_property
    def files(self) -> Mapping[str, Path]:
        return config_files(self.root)

    def select(self, patterns: Sequence[str]) -> list[str]:
        """Returns the names that any of the patterns matches (fnmatch), in order.

        Raises `UserError` with all the patterns that match nothing.
        """
        problems = []
        for pattern in patterns:
            if not fnmatch.filter(self.files, pattern):
                hint = did_you_mean(pattern, self.files)
                known = ", ".join(self.files) or "none"
                problems.append(
                    Problem(
                        Code.UNKNOWN_MODEL,
                        Kind.VALUE,
                        f"no model config matches {pattern!r}",
                        f"{hint}{CONFIG_DIRECTORY}/ has: {known}.",
                    )
                )
        if problems:
            raise UserError(problems)
        return [n for n in self.files if any(fnmatch.fnmatchcase(n, p) for p in patterns)]

    def unknown(self, name: str) -> UserError:
        """Returns the error of a name that no model has, with the nearest one."""
        try:
            self.select([glob.escape(name)])
        except UserError as error:
            return error
        raise ValueError(f"{name} is a model")

    def config(self, name: str, environment: str) -> LoadedConfig:
        """Loads a config as an environment sees it; raises `UserError` with every problem.

        The name is the file's stem, or `CONFIG@VARIANT` for a variant's own model.
        """
        model, _, variant = name.partition("@")
        loaded = self._as_seen(environment, self._read(model))
        return loaded.variants[variant] if variant else loaded

    def published_names(self, name: str, environment: Environment) -> list[str]:
        """Returns the names of what a config has published: its model, and variants' own models."""
        return [name, *(f"{name}@{own}" for own in self.config(name, environment.name).variants)]

    def _as_seen(self, environment: str, file: ConfigFile) -> LoadedConfig:
        defaults, base = load_defaults(environment, self.root), None
        if (name := base_of(file.document)) is not None:
            base = self._base(name, file, environment)
        return config_for(environment, file, self.environment_names, defaults, base)

    def _base(self, name: str, file: ConfigFile, environment: str) -> LoadedConfig:
        """Returns the config of an adapter's base; raises `UserError`, with its place."""
        problem = unknown_base(name, file.path.stem, self.files)
        try:
            if problem is None and base_of(self._read(name).document) is None:
                return self.config(name, environment)
        except UserError:
            problem = invalid_base(name)
        problem = problem or adapter_as_base(name)
        raise UserError([problem.at(file.document.locate(problem.field))])

    def base_named_in(self, name: str) -> str | None:
        """Returns the base that a model's file names; None if it names none, or is no YAML."""
        try:
            return base_of(self._read(name).document)
        except UserError:
            return None

    def _read(self, name: str) -> ConfigFile:
        if name not in self.files:
            raise self.unknown(name)
        return read_config(self.files[name], self.root)

    @functools.cached_property
    def texts(self) -> Mapping[str, bytes]:
        """Returns the readable files by model.

        A word in them tells which are worth reading as YAML, which takes its time.
        """
        found = {}
        for name, path in self.files.items():
            with contextlib.suppress(OSError):  # its own stack carries the report
                found[name] = path.read_bytes()
        return found

    def naming(self, host: str) -> list[str]:
        """Returns the other models whose files may name a model as their host."""
        word = host.encode()
        return [
            name
            for name, text in self.texts.items()
            if name != host and word in text and names_host(text)
        ]

    @functools.cached_property
    def environment_names(self) -> list[str]:
        return environment_names(self.root)

    def environment(self, name: str) -> Environment:
        return load_environment(name, self.root)

    def lock_path(self, name: str) -> Path:
        """Returns the path of a config's lock file, whether it exists or not."""
        return self.root / CONFIG_DIRECTORY / f"{name.partition('@')[0]}.lock.json"

    def lock(self, name: str) -> Lock:
        return read_lock(self.lock_path(name), self.root, name)

    def measurement_path(self, name: str) -> Path:
        """Returns the path of a model's kept measurement, whether it exists or not."""
        return self.root / CONFIG_DIRECTORY / f"{name}.measured.json"

    def measurement(self, name: str) -> Measurement | None:
        return read_measurement(self.measurement_path(name), self.root)
