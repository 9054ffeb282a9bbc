"""One model of a repository: its files, and the backend that Triton finds for it.

Sources: docs/user_guide/model_repository.md and model_configuration.md of
triton-inference-server/server, and AutoCompleteBackendFields of triton-inference-server/core.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from slipway.facts.triton.backends import (
    ENSEMBLE,
    Backend,
    backend_of_file,
    backend_of_platform,
    backends,
)
from slipway.planning.families.triton.repository.config_file import ConfigFile
from slipway.planning.families.triton.repository.text_format import (
    START,
    Message,
    Position,
    integer,
)

Fault = tuple[Position, str, str]
"""What is wrong with a model: the place in its config.pbtxt, the message and the remedy."""

# Triton ignores other names, and takes `01` for none.
VERSION = re.compile(r"[1-9][0-9]*")


@dataclass(frozen=True)
class Model:
    """A directory with a config.pbtxt that could be read.

    The config has no values of a wrong type. Paths are within the directory; `pointers` are of Git
    LFS.
    """

    name: str
    file: ConfigFile
    config: Message
    files: Sequence[str]
    empty_files: Collection[str] = ()
    pointers: Collection[str] = ()

    @cached_property
    def versions(self) -> list[int]:
        """Returns the numbers of the version directories that have files, lowest first."""
        folders = {path.partition("/")[0] for path in self.files if "/" in path}
        return sorted(int(folder) for folder in folders if VERSION.fullmatch(folder))

    @property
    def served_versions(self) -> list[int]:
        """Returns the versions that `version_policy` selects: the latest one by default."""
        if self.config.messages("version_policy", "all"):
            return self.versions
        if specific := self.config.messages("version_policy", "specific"):
            named = [integer(scalar) for scalar in specific[0].scalars("versions")]
            return [version for version in self.versions if version in named]
        latest = self.config.messages("version_policy", "latest")
        count = (latest[0].integer("num_versions") if latest else None) or 1
        return self.versions[-count:]

    @property
    def is_ensemble(self) -> bool:
        return self.config.text("platform") == ENSEMBLE or self.has("ensemble_scheduling")

    def has(self, name: str) -> bool:
        return self.config.one(name) is not None

    @cached_property
    def backend_name(self) -> str:
        """Returns the backend's name; empty if Triton would find none, and for an ensemble."""
        if self.is_ensemble:
            return ""
        if named := self.config.text("backend"):
            return named
        if platform := self.config.text("platform"):
            found = backend_of_platform(platform)
            return found.name if found else ""
        given = self.config.text("default_model_filename")
        if given:
            found = backend_of_file(given)
            return found.name if found else ""
        for backend in backends().values():
            if any(self._is_in_a_version(file) for file in backend.platforms.values()):
                return backend.name
        # A backend of the user's own may be named by the directory: `NAME.BACKEND`.
        return self.name.partition(".")[2]

    @property
    def backend_position(self) -> Position:
        """Returns where config.pbtxt says the backend; its first line if it does not."""
        places = self.config.scalars("backend") or self.config.scalars("platform")
        return places[0].position if places else START

    @property
    def backend(self) -> Backend | None:
        """Returns the backend of AWS's image; None for an ensemble and for any other backend."""
        return backends().get(self.backend_name)

    @property
    def brings_backend(self) -> bool:
        """Returns whether the directory has the library of a backend of the user's own."""
        library = f"libtriton_{self.backend_name}.so"
        return any(path.rpartition("/")[2] == library for path in self.files)

    @property
    def completes_itself(self) -> bool:
        """Returns whether Triton may read tensors and the batch size from the model."""
        return self.backend is not None and self.backend.completes

    def tensors(self, direction: str) -> dict[str, Message]:
        return {tensor.text("name"): tensor for tensor in self.config.messages(direction)}

    def model_files(self) -> Iterator[str]:
        """Yields the files that every served version must have."""
        if given := self.config.text("default_model_filename"):
            yield given
        elif self.has("cc_model_filenames"):
            # Each GPU loads the file for its compute capability.
            yield from (
                entry.text("value") for _, entry in self.config.entries("cc_model_filenames")
            )
        elif self.backend is not None and not self.has("runtime"):
            file = self.backend.model_file(self.config.text("platform"))
            if file is not None:
                yield file

    def has_file(self, path: str) -> bool:
        """Returns whether the directory has a file, or a directory with files, of this path."""
        return any(file == path or file.startswith(f"{path}/") for file in self.files)

    def _is_in_a_version(self, file: str) -> bool:
        return any(self.has_file(f"{version}/{file}") for version in self.versions)
