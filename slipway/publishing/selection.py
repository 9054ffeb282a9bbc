"""Selects the files of a checkpoint that are published.

A checkpoint often has the same weights in several formats and folders. A loader reads one of them.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from slipway.codes.code import Code
from slipway.config.sections.artifacts import HubWeights, PathWeights, S3Weights
from slipway.errors import Kind, Problem, UserError
from slipway.publishing.file_set import FileSet, gguf_alone
from slipway.publishing.manifest import is_portable

# Counts up when `loaded_files` takes other files: what a bucket has from before is another's.
SELECTION = 1
_TEXTS = ("*.jinja", "*.json", "*.model", "*.spm", "*.tiktoken", "*.txt")
# Their `auto_map` names classes in Python files of the repository.
_NAME_CODE = ("config.json", "tokenizer_config.json", "processor_config.json")
_SHOWN = 10
# Of PyTorch, TensorFlow, Flax, Rust, ONNX, OpenVINO and llama.cpp; Meta's, Mistral's and Apple's.
_FORMATS = re.compile(
    r"(coreml|metal|onnx|openvino|original)/.*|consolidated([.-].*)?\.(pth|safetensors|index\.json)"
    r"|((diffusion_)?pytorch_model|(tf|flax|rust|openvino)_model|model)([.-][^/]*)?"
    r"\.(bin|pt|pth|h5|msgpack|ot|onnx|onnx_data|xml)(\.index\.json)?|[^/]*\.gguf"
)


def wanted(
    files: FileSet, weights: HubWeights | S3Weights | PathWeights, *, loads_any: bool = False
) -> FileSet:
    """Returns the files of a checkpoint that are published.

    `loads_any` says that the loader may read any file of a folder. Raises `UserError` if there are
    none, or a name cannot be used.
    """
    field = ("artifacts", "weights")
    patterns, sizes_bytes = weights.allow_patterns, files.sizes_bytes
    if patterns is not None:
        paths = {path for path in sizes_bytes if _matches(path, patterns)}
    elif isinstance(weights, HubWeights):
        paths = loaded_files(files)
    else:
        paths = sizes_bytes.keys() - (set() if loads_any else same_weights_again(files))
    if not paths:
        has = f"{len(sizes_bytes)} files, for example {', '.join([*sizes_bytes][:5]) or 'none'}"
        none = "matches `allow_patterns`" if patterns else "is one that a loader reads"
        fault = f"no file of {files.shown_as} {none}"
        remedy = f"Name files with `allow_patterns`. It has {has}."
        if not patterns and (found := gguf_alone(files)):
            fault, remedy = f"{files.shown_as}{found[0]}", found[1]
        raise UserError([Problem(Code.HUB_PATTERNS, Kind.VALUE, fault, remedy, field)])
    if unnameable := sorted(path for path in paths if not is_portable(path)):
        fault = f"{files.shown_as} has a file whose name cannot be used: "
        remedy = "Leave it out with `allow_patterns`."
        raise UserError(
            Problem(Code.UNUSABLE_FILE_NAME, Kind.VALUE, f"{fault}{path!r}", remedy, field)
            for path in unnameable
        )
    return files.only(paths)


def left_out(taken: FileSet) -> str | None:
    """Returns a line about files that are not taken; None if all are."""
    left, again = taken.left_out, same_weights_again(taken)
    if not left:
        return None
    # A folder of which nothing is taken is named in place of its files.
    kept = {path.partition("/")[0] for path in taken.sizes_bytes}
    largest = sorted(left, key=lambda path: -left[path])
    tops = ((path, *path.partition("/")[:2]) for path in largest)
    names = list(dict.fromkeys(path if top in kept else top + slash for path, top, slash in tops))
    shown = ", ".join(names[:_SHOWN] + ["..."] * (len(names) > _SHOWN))
    size = sum(left[path] for path in again) / 1e9
    same = f"; {size:,.1f} GB are the same weights in another format" if again else ""
    count = f"{len(left)} of {len(left) + len(taken.sizes_bytes)} files"
    return f"Left out of {taken.shown_as}: {shown} ({count}{same})."


def same_weights_again(files: FileSet) -> set[str]:
    """Returns the paths of weights, left out or not, that a loader reads in another format."""
    paths = files.sizes_bytes.keys() | files.left_out.keys()
    again = set[str]()
    for folder in {path[: path.rfind("/") + 1] for path in files.sizes_bytes}:
        index, weights = files.loaded(folder)
        if weights and files.sizes_bytes.keys() >= set(weights):
            names = (path.removeprefix(folder) for path in paths if path.startswith(folder))
            found = {folder + name for name in names if _FORMATS.fullmatch(name)}
            again |= found - {index, *weights}
    return again


def loaded_files(files: FileSet) -> set[str]:
    """Returns the paths that loaders read: at the top, and in folders that the repository names."""
    return {path for folder in _folders(files) for path in _loaded_in(folder, files)}


def _folders(files: FileSet) -> set[str]:
    modules = files.parsed("modules.json", list) or []
    names = [str(each.get("path", "")) for each in modules if isinstance(each, dict)]
    pipeline = files.document("model_index.json")
    names += [name for name, each in pipeline.items() if isinstance(each, list)]
    # Further templates, which transformers reads where they are.
    return {"", "additional_chat_templates/", *(f"{name}/" for name in names if name)}


def _loaded_in(folder: str, files: FileSet) -> Iterator[str]:
    index, weights = files.loaded(folder)
    patterns = _TEXTS if weights or index else (*_TEXTS, "*.safetensors")
    if any("auto_map" in files.document(folder + name) for name in _NAME_CODE):
        patterns = (*patterns, "*.py")
    # With weights beside it, transformers takes an adapter's config for the model's.
    unwanted = ("adapter_*", "*.index.json") if weights else ()
    for path in files.sizes_bytes:
        name = path.removeprefix(folder)
        is_here = folder + name == path and "/" not in name
        is_read = is_here and _matches(name, patterns) and not _matches(name, unwanted)
        if is_read or path in {index, *weights}:
            yield path


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)
