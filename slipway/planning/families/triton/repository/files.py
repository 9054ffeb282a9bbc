"""Checks of the files that a config.pbtxt names: each is there, within its model, and whole.

Sources: src/model.cc and src/backend_model_instance.cc of triton-inference-server/core, and
src/python_be.cc of triton-inference-server/python_backend.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from slipway.planning.families.triton.repository.model import Fault, Model
from slipway.planning.families.triton.repository.text_format import START, Scalar

_ENVIRONMENT = "EXECUTION_ENV_PATH"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
# Messages with a field that names a file; the field; the folder of that file.
_FILE_FIELDS = (
    (("output",), "label_filename", ""),
    (("model_operations",), "op_library_filename", ""),
    (("model_warmup", "inputs", "value"), "input_data_file", "warmup"),
    (("sequence_batching", "state", "initial_state"), "data_file", "initial_state"),
)


@dataclass(frozen=True)
class _Named:
    """A file that config.pbtxt names, in a folder of the model's directory."""

    field: str
    scalar: Scalar
    folder: str = ""

    @property
    def path(self) -> str | None:
        """Returns the path within the model's directory; None if it leads out."""
        text = self.scalar.text
        if self.field == _ENVIRONMENT:
            if not text.startswith(f"{_MODEL_DIRECTORY}/"):
                return None
            text = text.removeprefix(f"{_MODEL_DIRECTORY}/")
        path = posixpath.normpath(posixpath.join(self.folder, text))
        return None if path.startswith(("/", "..")) or path == "." else path


def _named_files(model: Model) -> Iterator[_Named]:
    for key, entry in model.config.entries("parameters"):
        if key == _ENVIRONMENT and model.backend_name == "python":
            for value in entry.messages("value"):
                yield from (_Named(key, each) for each in value.scalars("string_value"))
    for path, field, folder in _FILE_FIELDS:
        for message in model.config.messages(*path):
            yield from (_Named(field, each, folder) for each in message.scalars(field))


def has_model_files(model: Model) -> Iterator[Fault]:
    """Each version that is served has the file that its backend loads."""
    given = model.config.scalars("default_model_filename")
    for version in model.served_versions:
        for file in model.model_files():
            if not model.has_file(f"{version}/{file}"):
                yield (
                    given[0].position if given else START,
                    f"`{model.name}/{version}` has no {file}, which the backend "
                    f"`{model.backend_name}` loads",
                    "Add the file, or name yours with `default_model_filename`.",
                )


def named_files_are_there(model: Model) -> Iterator[Fault]:
    """Triton reads what config.pbtxt names, wherever that is; only the repository is published."""
    for named in _named_files(model):
        path, text = named.path, named.scalar.text
        if path is None:
            example = f"{_MODEL_DIRECTORY}/" if named.field == _ENVIRONMENT else ""
            message = f"`{named.field}` is {text!r}, which is no path within the model's directory"
            remedy = f"Put the file into `{model.name}`, and write `{example}NAME`."
            yield named.scalar.position, message, remedy
        elif not model.has_file(path):
            message = f"`{named.field}` names {text}, and there is no file `{model.name}/{path}`"
            yield named.scalar.position, message, "Add the file, or correct the name."


def files_are_whole(model: Model) -> Iterator[Fault]:
    """An empty model or a pointer of Git LFS is published in silence, and Triton refuses it."""
    read = {named.path for named in _named_files(model)}
    for version in model.served_versions:
        read |= {f"{version}/{file}" for file in model.model_files()}
    for path in model.files:
        is_pointer = path in model.pointers
        if is_pointer or (path in read and path in model.empty_files):
            yield (
                START,
                f"`{model.name}/{path}` is "
                + ("a pointer of Git LFS and not the file" if is_pointer else "empty"),
                "Run `git lfs pull` there." if is_pointer else "Copy the file again.",
            )
