"""Selects the files of a repository on the Hub that are published.

A repository often has the same weights in several formats and folders. A loader reads one of them.
"""

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from slipway.codes.code import Code
from slipway.config.sections.artifacts import HubWeights
from slipway.errors import Kind, Problem, UserError
from slipway.json_text import parse_json
from slipway.publishing.file_set import FileSet
from slipway.publishing.manifest import is_portable

# Counts up when `loaded_files` takes other files: what a bucket has from before is another's.
SELECTION = 1
_TEXTS = ("*.jinja", "*.json", "*.model", "*.spm", "*.tiktoken", "*.txt")
# Their `auto_map` names classes in Python files of the repository.
_NAME_CODE = ("config.json", "tokenizer_config.json", "processor_config.json")
_SHOWN = 10


def wanted(files: FileSet, weights: HubWeights) -> FileSet:
    """Returns the files of a commit that are published.

    Raises:
        UserError: there are none, or a name cannot be used.
    """
    field = ("artifacts", "weights")
    patterns, sizes_bytes = weights.allow_patterns, files.sizes_bytes
    if patterns is None:
        paths = loaded_files(files)
    else:
        paths = {path for path in sizes_bytes if _matches(path, patterns)}
    if not paths:
        has = f"{len(sizes_bytes)} files, for example {', '.join([*sizes_bytes][:5]) or 'none'}"
        none = "matches `allow_patterns`" if patterns else "is one that a loader reads"
        fault = f"no file of {weights.repository} {none}"
        remedy = f"Name files with `allow_patterns`. It has {has}."
        raise UserError([Problem(Code.HUB_PATTERNS, Kind.VALUE, fault, remedy, field)])
    if unnameable := sorted(path for path in paths if not is_portable(path)):
        raise UserError(
            Problem(
                Code.UNUSABLE_FILE_NAME,
                Kind.VALUE,
                f"{weights.repository} has a file whose name cannot be used: {path!r}",
                "Leave it out with `allow_patterns`.",
                field,
            )
            for path in unnameable
        )
    return replace(files, sizes_bytes={path: sizes_bytes[path] for path in sorted(paths)})


def left_out(files: FileSet, taken: FileSet) -> str | None:
    """Returns a line about files that are not taken; None if all are."""
    left = sorted(files.sizes_bytes.keys() - taken.sizes_bytes.keys())
    if not left:
        return None
    # A folder of which nothing is taken is named in place of its files.
    kept = {path.partition("/")[0] for path in taken.sizes_bytes}
    tops = ((path, *path.partition("/")[:2]) for path in left)
    names = list(dict.fromkeys(path if top in kept else top + slash for path, top, slash in tops))
    shown = ", ".join(names[:_SHOWN] + ["..."] * (len(names) > _SHOWN))
    return f"Left out of {files.shown_as}: {shown} ({len(left)} of {len(files.sizes_bytes)} files)."


def loaded_files(files: FileSet) -> set[str]:
    """Returns the paths that loaders read: at the top, and in folders that the repository names."""
    return {path for folder in _folders(files) for path in _loaded_in(folder, files)}


def _folders(files: FileSet) -> set[str]:
    try:
        names = [each["path"] for each in parse_json(files.head("modules.json"))]
    except (LookupError, ValueError, TypeError):
        names = []
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
