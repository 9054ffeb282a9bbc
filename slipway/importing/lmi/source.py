"""Reads serving.properties and the files beside it, and where they say that the weights are.

Keys and values are those that Java's Properties class reads. Nothing is run.
"""

import ast
import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from slipway import java_properties
from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError, relative
from slipway.importing.draft import Setting, printable
from slipway.importing.weights import WeightsPlace, named_weights

PROPERTIES_FILE = "serving.properties"
SCRIPT_FILE = "model.py"
REQUIREMENTS_FILE = "requirements.txt"
WEIGHTS_KEYS = ("option.model_id", "option.s3url")
REVISION_KEY = "option.revision"
_CONFIG_FILE = "config.json"
# Files of a checkpoint, which are weights and not code.
_WEIGHTS = (".bin", ".ckpt", ".gguf", ".h5", ".msgpack", ".onnx", ".pt", ".pth", ".safetensors")
_LARGEST_BYTES = 1_000_000
_LARGEST_SCRIPT_FILE_BYTES = 10_000_000
_CACHES = frozenset({"__pycache__"})


@dataclass(frozen=True)
class LmiSource:
    """The settings of an LMI container, and the files of its package.

    Args:
        origin: their place, for people.
        kind: name of the source in reasons: `serving.properties`.
        names: names of the settings at their source, where these are not the keys.
        repeated: earlier values of keys that stand there twice.
        files: the package's other files by path, without weights.
        has_checkpoint: whether the folder contains the weights too.
        is_built: whether the image is one that Slipway built, with a handler of its own.
    """

    origin: str
    kind: str
    settings: Mapping[str, str]
    names: Mapping[str, str] = field(default_factory=dict)
    repeated: Sequence[Setting] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    has_checkpoint: bool = False
    directory: Path | None = None
    is_built: bool = False

    @property
    def has_handler(self) -> bool:
        """Returns whether the model.py, or the file that is named instead, answers requests.

        Otherwise it has formatters, which a handler of the image runs.
        """
        entry_point = self.settings.get("option.entryPoint", "").strip().removeprefix("./")
        content = self.files.get(entry_point) or self.files.get(SCRIPT_FILE)
        name = self.settings.get("option.handler", "handle").strip()
        return content is None or defines(content, name)

    def name_of(self, key: str) -> str:
        return self.names.get(key, key)


def read_directory(directory: Path, shown: str) -> LmiSource:
    """Reads the folder of a model; raises `UserError` without a file that Java reads."""
    if directory.is_file():
        # The file itself was named.
        directory, shown = directory.parent, shown.rpartition("/")[0] or "."
    path = directory / PROPERTIES_FILE
    shown_file = f"{shown}/{PROPERTIES_FILE}"
    try:
        if path.exists() and not path.is_file():
            # Opening a pipe would wait for somebody who writes into it.
            raise OSError(errno.EINVAL, "it is a folder, a pipe or a device")
        with path.open("rb") as file:
            content = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise UserError.of(
            Code.IMPORT_UNREADABLE,
            f"{shown_file} cannot be read: {error.strerror}",
            f"Name the folder that has the file {PROPERTIES_FILE}.",
        ) from None
    if len(content) > _LARGEST_BYTES:
        raise UserError.of(
            Code.IMPORT_UNREADABLE,
            f"{shown_file} has more than {_LARGEST_BYTES // 1_000_000} MB",
            "Name the folder of an LMI model: its file has a few lines.",
        )
    try:
        entries = java_properties.entries(content)
    except java_properties.EscapeError as error:
        raise UserError(
            [
                Problem(
                    Code.IMPORT_UNREADABLE,
                    Kind.SHAPE,
                    f"`{error.escape}` is not an escape, and Java refuses the whole file",
                    r"Write `\u` with four hexadecimal digits, or `\\` for a backslash.",
                    location=Location(shown_file, error.line, 1),
                )
            ]
        ) from None
    settings = {entry.key: entry.value for entry in entries}
    last = {entry.key: entry.line for entry in entries}
    repeated = [
        Setting(entry.key, entry.value, f"line {last[entry.key]} has the key again, and wins.")
        for entry in entries
        if entry.line != last[entry.key]
    ]
    files, has_checkpoint = _files(directory, shown)
    return LmiSource(
        origin=shown_file,
        kind=PROPERTIES_FILE,
        settings=settings,
        repeated=repeated,
        files=files,
        has_checkpoint=has_checkpoint,
        directory=directory,
    )


def _files(directory: Path, shown: str) -> tuple[dict[str, bytes], bool]:
    """Returns the package's other files, and whether a checkpoint lies among them.

    Beside a checkpoint only Python files and requirements.txt are code.
    """
    found = {
        path.relative_to(directory).as_posix(): path
        for path in sorted(directory.rglob("*"))
        if path.is_file() and _travels(path.relative_to(directory))
    }
    has_checkpoint = _CONFIG_FILE in found and any(name.endswith(_WEIGHTS) for name in found)
    if has_checkpoint:
        found = {
            name: path
            for name, path in found.items()
            if name.endswith(".py") or name == REQUIREMENTS_FILE
        }
    else:
        found = {name: path for name, path in found.items() if not name.endswith(_WEIGHTS)}
    too_large = [
        name for name, path in found.items() if path.stat().st_size > _LARGEST_SCRIPT_FILE_BYTES
    ]
    if too_large:
        raise UserError.of(
            Code.IMPORT_UNREADABLE,
            f"{shown} has files of more than {_LARGEST_SCRIPT_FILE_BYTES // 1_000_000} MB, which "
            f"are no code: {', '.join(too_large)}",
            "Move them out of the folder. Weights belong to `--weights`.",
        )
    try:
        return {name: path.read_bytes() for name, path in found.items()}, has_checkpoint
    except OSError as error:
        raise UserError.of(
            Code.IMPORT_UNREADABLE,
            f"{error.filename} cannot be read: {error.strerror}",
            "Allow reading it, or move it out of the folder.",
        ) from None


def _travels(path: Path) -> bool:
    is_hidden = any(part.startswith(".") for part in path.parts)
    return not is_hidden and _CACHES.isdisjoint(path.parts) and path.as_posix() != PROPERTIES_FILE


def defines(content: bytes, name: str) -> bool:
    """Returns whether a Python file has a name of a function; it is parsed, and not run.

    Of a file that cannot be parsed, anything may be true.
    """
    try:
        body = ast.parse(content).body
    except (SyntaxError, ValueError):
        return True
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            found |= {each.asname or each.name for each in node.names}
        elif isinstance(node, ast.Assign):
            found |= {each.id for each in node.targets if isinstance(each, ast.Name)}
        elif isinstance(node, ast.If | ast.Try):
            return True  # what it defines is not known before it runs
    return not found.isdisjoint({name, "*"})


def weights_place(source: LmiSource, root: Path) -> WeightsPlace:
    key = next((key for key in WEIGHTS_KEYS if source.settings.get(key)), None)
    if key is None:
        return _beside(source, root)
    value, name = source.settings[key], source.name_of(key)
    shown = f"{name}={printable(value)}"
    if value.startswith(("/opt/ml/model", "./")) or value == ".":
        return _beside(source, root, shown)
    return named_weights(shown, value, source.settings.get(REVISION_KEY) or None)


def _beside(source: LmiSource, root: Path, shown: str = "") -> WeightsPlace:
    keys = " or ".join(f"`{source.name_of(key)}`" for key in WEIGHTS_KEYS)
    what = f"`{shown}` is a folder of the package" if shown else f"there is no {keys}"
    if source.directory is None:
        return WeightsPlace(shown, missing=what)
    if not source.has_checkpoint:
        return WeightsPlace(shown, missing=f"{what}, and {source.origin} has no weights beside it")
    directory = source.directory.resolve()
    if not directory.is_relative_to(root.resolve()):
        return WeightsPlace(
            shown, missing=f"{what}, and the weights beside {source.origin} are not in the project"
        )
    path = relative(directory, root.resolve())
    return WeightsPlace(shown or path, {"source": "path", "path": path})
