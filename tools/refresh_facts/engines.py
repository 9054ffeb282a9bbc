"""Writes slipway/facts/lmi/lmi_engines.json: which models the engines of LMI images serve.

    python -m tools.refresh_facts.engines [DIRECTORY]

DIRECTORY keeps the releases that are read, build/engines without it. What is missing there is
downloaded from the package index: the source of each image's vLLM, and the Transformers with which
vLLM runs a network that it has no code for. Nothing in them is executed. TensorRT-LLM and
transformers-neuronx are on no public index of that form: engine_tables.yaml has their rows.
"""

import ast
import functools
import hashlib
import itertools
import os
import sys
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urljoin

import httpx

from slipway.facts.images import image, versions
from tools.refresh_facts.tables import FACTS, SourceError, by_hand, run

PATH = FACTS / "lmi" / "lmi_engines.json"
DOWNLOADS = FACTS.parents[1] / "build" / "engines"
TABLES: Final = by_hand("engine_tables.yaml")
_INDEX = "https://pypi.org/simple"
_FORM = {"Accept": "application/vnd.pypi.simple.v1+json"}
# The images whose vLLM is for GPUs; together they have each version of DJL Serving once.
_FRAMEWORKS = ("djl-deepspeed", "djl-lmi")
_MODELS, _QUANTIZATION = "vllm/model_executor/models", "vllm/model_executor/layers/quantization"
_BY_TRANSFORMERS = "_TRANSFORMERS_SUPPORTED_MODELS"
_REGISTER = ".register_module"
_REGISTERED = ("_TOOL_PARSERS_TO_REGISTER", "_REASONING_PARSERS_TO_REGISTER")
_AUTO = "transformers/models/auto/modeling_auto.py"
_SUFFIXES = "_SUFFIX_TO_DEFAULTS"
_COMPATIBLE = "_supports_attention_backend"
# vLLM asks a network's processor so; see vllm/model_executor/models/transformers/multimodal.py.
_COUNTS = "_get_num_multimodal_tokens"
_PROCESSORS = ("PROCESSOR_MAPPING_NAMES", "MISSING_PROCESSOR_MAPPING_NAMES")

Name = TypeVar("Name", str, tuple[str, int])


class Release:
    """The Python files of one release, by their path below its root."""

    def __init__(self, archive: Path) -> None:
        try:
            if archive.suffix == ".whl":
                with zipfile.ZipFile(archive) as wheel:
                    names = [name for name in wheel.namelist() if name.endswith(".py")]
                    self._files = {name: wheel.read(name) for name in names}
            else:
                with tarfile.open(archive) as source:
                    self._files = {
                        member.name.partition("/")[2]: file.read()
                        for member in source
                        if member.name.endswith(".py") and (file := source.extractfile(member))
                    }
        except (OSError, tarfile.TarError, zipfile.BadZipFile):
            raise SourceError(f"{archive} is no release") from None
        self.name = archive.name

    def below(self, folder: str, word: str = "") -> Iterator[ast.Module]:
        """Yields the modules of a folder that have a word, in order."""
        for name in sorted(self._files):
            if name.startswith(f"{folder}/") and word.encode() in self._files[name]:
                yield ast.parse(self._files[name])

    def module(self, path: str) -> ast.Module:
        """Returns one module; an empty one where the release has none of that name."""
        return ast.parse(self._files.get(path, b""))


def download(directory: Path, index: str, package: str, version: str, suffix: str) -> Path:
    """Returns the archive of a release, downloaded unless the directory has it.

    Raises `SourceError` if the index has no such release, sends another file than it lists, or
    cannot be reached.
    """
    path = directory / f"{package}-{version}{suffix}"
    if path.exists():
        return path
    page = f"{index.rstrip('/')}/{package}/"
    try:
        with httpx.Client(timeout=120, follow_redirects=True) as client:
            listed = client.get(page, headers=_FORM).raise_for_status().json()["files"]
            found = [each for each in listed if each["filename"] == path.name]
            if not found:
                raise SourceError(f"{index} has no {path.name}")
            content = client.get(urljoin(page, found[0]["url"])).raise_for_status().content
    except httpx.HTTPError as error:
        raise SourceError(f"{package} {version} cannot be downloaded: {error}") from None
    if hashlib.sha256(content).hexdigest() != found[0]["hashes"]["sha256"]:
        raise SourceError(f"{index} sends another {path.name} than it lists")
    directory.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def vllm_versions() -> dict[str, str]:
    """Returns the vLLM of each version of DJL Serving that has one for GPUs, the oldest first."""
    found = {
        version: image(framework, version, "us-east-1").components.get("vllm")
        for framework in _FRAMEWORKS
        for version in versions(framework)
    }
    return {version: vllm for version, vllm in found.items() if vllm is not None}


def _assigned(tree: ast.Module, name: str) -> ast.expr | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == name:
                return node.value
    return None


def _entries(nodes: Iterable[ast.AST | None]) -> Iterator[tuple[str | None, ast.expr]]:
    """Yields key and value of the nodes that write out a mapping; `**NAME` has no key."""
    for node in nodes:
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None or isinstance(key, ast.Constant):
                    yield None if key is None else str(key.value), value


def _keys(tree: ast.Module, name: str, left_out: Iterable[str] = ()) -> set[str]:
    """Returns the keys of a mapping, and of those that it is made of."""
    found: set[str] = set()
    for key, value in _entries([_assigned(tree, name)]):
        if key is not None:
            found.add(key)
        elif isinstance(value, ast.Name) and value.id not in left_out:
            found |= _keys(tree, value.id, left_out)
    return found


def _classes(trees: Iterable[ast.Module]) -> dict[str, ast.ClassDef]:
    """Returns the classes of modules by their names."""
    nodes = itertools.chain.from_iterable(tree.body for tree in trees)
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}


def architectures(release: Release) -> tuple[set[str], set[str]]:
    """Returns the classes that vLLM has code for, and those it gives to Transformers itself."""
    for path, name in TABLES["registries"].items():
        tree = release.module(path)
        if found := _keys(tree, name, TABLES["not_own"]):
            return found, _keys(tree, _BY_TRANSFORMERS) - found
    raise SourceError(f"{release.name} keeps its registry of models in another way now")


def suffixes(release: Release) -> set[str]:
    """Returns the ends of class names that vLLM takes for one another: it has an adapter."""
    found: set[str] = set()
    for tree in release.below("vllm/config", _SUFFIXES):
        if (pairs := _assigned(tree, _SUFFIXES)) is not None:
            found.update(name for name, _ in ast.literal_eval(pairs))
    return found


def parsers(release: Release, folders: Iterable[str]) -> set[str]:
    """Returns the names of parsers: registered by a decorator, or listed in a mapping."""
    found: set[str] = set()
    for tree in itertools.chain.from_iterable(map(release.below, folders)):
        for name in _REGISTERED:
            found |= _keys(tree, name)
        for node in ast.walk(tree):
            for made in getattr(node, "decorator_list", ()):
                if isinstance(made, ast.Call) and ast.unparse(made.func).endswith(_REGISTER):
                    names = ast.literal_eval([*made.args, *[k.value for k in made.keywords]][0])
                    found |= {names} if isinstance(names, str) else set(names)
    return found


def remote_code(release: Release) -> set[str]:
    """Returns the classes whose published checkpoints vLLM's own tests load with their code."""
    return {
        key
        for key, value in _entries(ast.walk(release.module("tests/models/registry.py")))
        if key is not None and isinstance(value, ast.Call)
        for keyword in value.keywords
        if keyword.arg == "trust_remote_code" and ast.unparse(keyword.value) == "True"
    }


def quantization(release: Release) -> dict[str, int]:
    """Returns the least compute capability of each method that runs on GPUs, such as 75.

    compressed-tensors names that of its least demanding scheme: the checkpoint chooses one.
    """
    classes = _classes(release.below(_QUANTIZATION))
    least_of = {name: _least(classes, name) for name in classes}
    schemes = [
        least
        for name, least in least_of.items()
        if least is not None and name.startswith("CompressedTensorsW")
    ]
    found: dict[str, int] = {}
    for key, value in _entries(ast.walk(release.module(f"{_QUANTIZATION}/__init__.py"))):
        method = ast.unparse(value)
        least = least_of.get(method)
        if key is not None and least is not None:
            of_scheme = min(schemes, default=0) if method == "CompressedTensorsConfig" else 0
            found[key.replace("-", "_")] = max(least, of_scheme)
    return found


def _least(classes: Mapping[str, ast.ClassDef], name: str) -> int | None:
    """Returns the least capability that a class names; None for one that runs on no GPU."""
    for node in _line(classes, name):
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "get_min_capability":
                match method.body[-1]:
                    case ast.Return(ast.Constant(int(least))) if least >= 10:
                        return least
                return None
    return None


def _line(classes: Mapping[str, ast.ClassDef], name: str) -> Iterator[ast.ClassDef]:
    """Yields a class and its ancestors in the same mapping, in the order of look-ups."""
    node = classes.get(name)
    if node is not None:
        yield node
        for base in node.bases:
            yield from _line(classes, ast.unparse(base))


def auto_classes(release: Release, mappings: Iterable[str]) -> dict[str, set[str]]:
    """Returns the classes of each model type in mappings of Transformers, `-` as `_`."""
    tree = release.module(_AUTO)
    found: dict[str, set[str]] = {}
    for name in mappings:
        middle = f"FOR_{name}_" if name else ""
        value = _assigned(tree, f"MODEL_{middle}MAPPING_NAMES")
        if not isinstance(value, ast.Call):
            continue
        # An older mapping ends with the rows of another one, `*list(...)`.
        rows = [each for each in getattr(value.args[0], "elts", ()) if isinstance(each, ast.Tuple)]
        for kind, classes in map(ast.literal_eval, rows):
            names = {classes} if isinstance(classes, str) else set(classes)
            found.setdefault(kind.replace("-", "_"), set()).update(names)
    if not found:
        raise SourceError(f"{release.name} keeps its mappings of models in another way now")
    return found


def compatible(release: Release) -> set[str]:
    """Returns the classes of Transformers that run inside another engine, such as vLLM.

    They write text, or they are encoders. Other ends of a writer's name follow from `suffixes`.
    """
    encoders = auto_classes(release, ("MASKED_LM",))
    read = auto_classes(release, ("", "SEQUENCE_CLASSIFICATION"))
    kinds = [found for kind, found in read.items() if kind in encoders]
    writers = auto_classes(release, TABLES["writers"]).values()
    named = set().union(*writers, *kinds) - uncounted(release)
    found: set[str] = set()
    for tree in release.below("transformers/models", _COMPATIBLE):
        classes = _classes([tree])
        for name in named & set(classes):
            told = [
                ast.unparse(item.value) == "True"
                for node in _line(classes, name)
                for item in node.body
                if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == _COMPATIBLE
            ]
            if told and told[0]:
                found.add(name)
    return found


def uncounted(release: Release) -> set[str]:
    """Returns the classes whose processor does not say how many tokens an image takes.

    vLLM does not load them, Mllama's for example. A processor of which nothing is known may.
    """
    processors = _classes(release.below("transformers/models", _COUNTS))
    counting = {name for name, node in processors.items() if f"def {_COUNTS}" in ast.unparse(node)}
    silent: set[str] = set()
    for tree in release.below("transformers/models/auto", _PROCESSORS[0]):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in _PROCESSORS:
                rows = (each for each in ast.walk(node) if isinstance(each, ast.Tuple))
                silent |= {
                    kind.replace("-", "_")
                    for kind, processor in map(ast.literal_eval, rows)
                    if processor not in counting
                }
    writers = auto_classes(release, ("CAUSAL_LM",))
    seers = auto_classes(release, ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM"))
    found = set().union(*(classes for kind, classes in seers.items() if kind in silent))
    return found.difference(*writers.values())


def spans(known: Mapping[str, Collection[Name]]) -> dict[Name, list[str]]:
    """Returns the spans of versions, which are in order, in which each name is known, by name."""
    found: dict[Name, list[str]] = {}
    newest = list(known)[-1]
    names: set[Name] = set().union(*known.values())
    for name in sorted(names):
        found[name] = []
        grouped = itertools.groupby(known.items(), key=lambda each: name in each[1])
        for is_known, group in grouped:
            run = [at for at, _ in group]
            if is_known:
                found[name].append(f"{run[0]}..{'' if run[-1] == newest else run[-1]}")
    return found


def table(fetch: Callable[[str, str, str], Path]) -> Mapping[str, Any]:
    engines, transformers = vllm_versions(), dict(TABLES["transformers"])
    sources = {at: Release(fetch("vllm", vllm, ".tar.gz")) for at, vllm in engines.items()}
    wheel = functools.cache(lambda name: Release(fetch("transformers", name, "-py3-none-any.whl")))
    own, given = {}, {}
    for at, release in sources.items():
        own[at], given[at] = architectures(release)
    least = {at: quantization(release) for at, release in sources.items()}
    fallback: dict[str, set[str]] = {at: set() for at in engines}
    asked: dict[str, set[str]] = {at: set() for at in engines}
    for at, name in transformers.items():
        its = wheel(name)
        fallback[at] = (compatible(its) | given[at]) - own[at]
        there = set().union(*auto_classes(its, (*TABLES["writers"], *TABLES["readers"])).values())
        asked[at] = (remote_code(sources[at]) & own[at]) - there
    known = {"vllm": spans(own), "transformers": spans(fallback), **TABLES["architectures"]}
    wheels = [wheel(name) for name in dict.fromkeys(transformers.values())]
    families = _families(wheels, set().union(*known.values()))
    read = {
        "vllm": ", ".join(engines.values()),
        "transformers": ", ".join(dict.fromkeys(transformers.values())),
    }
    return {
        "sources": [each.format(**read) for each in TABLES["sources"]],
        "vllm": engines,
        "transformers": transformers,
        "suffixes": spans({at: suffixes(release) for at, release in sources.items()}),
        "remote_code": spans(asked),
        **{
            name: spans({at: parsers(release, folders) for at, release in sources.items()})
            for name, folders in TABLES["parsers"].items()
        },
        "quantization": {"vllm": _capabilities(least), **TABLES["quantization"]},
        "families": {kind: sorted(classes) for kind, classes in sorted(families.items())},
        "architectures": known,
    }


def _families(wheels: Iterable[Release], served: set[str]) -> dict[str, set[str]]:
    """Returns the classes of each model type: those that write text, and an encoder's others."""
    found: dict[str, set[str]] = {}
    read: dict[str, set[str]] = {}
    encoders: set[str] = set()
    for wheel in wheels:
        encoders.update(auto_classes(wheel, ("MASKED_LM",)))
        for kind, classes in auto_classes(wheel, TABLES["writers"]).items():
            found.setdefault(kind, set()).update(classes)
        for kind, classes in auto_classes(wheel, TABLES["readers"]).items():
            read.setdefault(kind, set()).update(classes & served)
    for kind, classes in read.items():
        if classes and (kind in encoders or not found.get(kind, set()) & served):
            found[kind] = found.get(kind, set()) | classes
    return found


def _capabilities(least: Mapping[str, Mapping[str, int]]) -> dict[str, list[dict[str, str]]]:
    """Returns the spans of versions in which each method needs a compute capability."""
    found: dict[str, list[dict[str, str]]] = {}
    for (name, value), runs in spans({at: each.items() for at, each in least.items()}).items():
        rows = found.setdefault(name, [])
        rows += [{"in": span, "least": f"sm{value}"} for span in runs]
        rows.sort(key=lambda row: list(least).index(row["in"].partition("..")[0]))
    return found


def main(arguments: list[str]) -> int:
    directory = Path(arguments[0]) if arguments else DOWNLOADS
    index = os.environ.get("PIP_INDEX_URL", _INDEX)
    fetch = functools.partial(download, directory, index)
    return run(PATH, lambda: table(fetch), levels=3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
