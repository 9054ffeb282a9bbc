"""Publishes a LoRA adapter: checks it against its base, and makes the archive that SageMaker wants.

Only what vLLM loads is published. Sources, read 2026-11-29: vllm/lora/peft_helper.py of vLLM 0.17,
and https://huggingface.co/docs/peft/developer_guides/checkpoint for the two files of an adapter.
"""

import gzip
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from slipway.codes.code import Code
from slipway.config.sections.artifacts import HubWeights, PathWeights, S3Weights
from slipway.errors import Kind, Problem, UserError
from slipway.json_text import parse_json
from slipway.planning.adapters import ARCHIVE, rank_problems
from slipway.planning.deployment import Deployment, problem
from slipway.planning.lock import LockedArtifact, LockedPart, inputs_digest
from slipway.project import Project
from slipway.publishing.directory import publish_files
from slipway.publishing.file_set import FileSet, require_whole
from slipway.publishing.manifest import Snapshot
from slipway.publishing.objects import file_set, objects_under
from slipway.publishing.recipes import Recipe
from slipway.publishing.selection import wanted
from slipway.publishing.store import ArtifactStore
from slipway.publishing.weights import part, publish_weights
from slipway.s3_address import S3Address

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_LARGEST_CONFIG_BYTES = 1 << 20
_FIELD = ("artifacts", "weights")
_PACKAGED = re.compile(r"adapters/([^/]+)/(.+)")
# The layer's number and the module in it: checkpoints differ in what comes before.
_MODULE = re.compile(r"[^0-9]*?(?P<module>\d+\..+?)\.(lora_(?P<side>[AB])\.)?[^.]+")


class AdapterFacts(NamedTuple):
    """What the files of an adapter say: the rank, the base's name, and each module's sides."""

    rank: int
    base_name: str
    modules: Mapping[str, tuple[int, ...]]


def publish_adapter(
    project: Project, deployment: Deployment, store: ArtifactStore
) -> tuple[LockedArtifact, int]:
    """Publishes an adapter's files, and the archive of them; returns it and how many bytes moved.

    Raises `UserError` if vLLM does not load the adapter, or not into this base.
    """
    config = deployment.config
    base = project.deployment(str(config.adapter_of), deployment.environment)
    slots, weights = base.adapter_slots, config.artifacts.weights
    assert slots is not None  # noqa: S101  # `require_publishable` has asked the base
    if not deployment.deploys_release and config.artifacts.sample is not None:
        weights = PathWeights(source="path", path=config.artifacts.sample.path)
    assert weights is not None  # noqa: S101  # for the type checker: it is publishable
    network = _network(project, base, store)
    if not network:
        store.progress.note(
            f"{base.config.name} is not published here, so nothing is compared with it."
        )
    found: list[tuple[FileSet, AdapterFacts]] = []

    def select(files: FileSet) -> FileSet:
        taken = adapter_files(files, weights)
        facts = adapter_facts(taken)
        problems = [*rank_problems(facts.rank, slots, base.config.name)]
        problems += network_problems(facts, network, base.config.name)
        if problems:
            raise UserError(problems)
        found.append((taken, facts))
        return taken

    files, sent = publish_weights(weights, project.root, store, select)
    taken, facts = found[-1]
    source = base.config.artifacts.weights
    named = source.repository if isinstance(source, HubWeights) else ""
    if network and named and facts.base_name not in ("", named):
        store.progress.note(
            f"{CONFIG} names {facts.base_name} as its base, and {base.config.name} serves {named}. "
            "Their modules have the same shapes."
        )
    archive, archived = _publish_archive(files, [*taken.sizes_bytes], store)
    digest = inputs_digest(deployment)
    locked = LockedArtifact(
        inputs_digest=digest, weights=files, compiled=archive, lora_rank=facts.rank
    )
    return locked, sent + archived


def check_packaged(deployment: Deployment, files: FileSet) -> None:
    """Checks the folders of `adapters/` beside weights, which DJL Serving loads at its start.

    Source, read 2026-11-29: https://github.com/deepjavalibrary/djl-serving,
    serving/docs/adapters.md. Raises `UserError` if the engine loads no adapters, or not one of
    these.
    """
    folders: dict[str, dict[str, int]] = {}
    for path, size_bytes in files.sizes_bytes.items():
        if (match := _PACKAGED.fullmatch(path)) is not None:
            folders.setdefault(match[1], {})[match[2]] = size_bytes
    slots, name = deployment.adapter_slots, deployment.config.name
    if folders and slots is None:
        message = f"the weights have adapters ({', '.join(folders)}), and the engine loads none"
        raise UserError([problem(Code.ADAPTER_BASE, message, deployment.way_to_adapters, _FIELD)])
    network, found = _modules(files) if folders else {}, list[Problem]()
    for folder, sizes_bytes in folders.items():
        own = _below(files, f"adapters/{folder}/", sizes_bytes)
        try:
            facts = adapter_facts(require_adapter(own))
        except UserError as error:
            found += error.problems
            continue
        assert slots is not None  # noqa: S101  # for the type checker
        found += [replace(each, field=_FIELD) for each in rank_problems(facts.rank, slots, name)]
        found += network_problems(facts, network, name)
    if found:
        raise UserError(found)


def _below(files: FileSet, prefix: str, sizes_bytes: Mapping[str, int]) -> FileSet:
    def read(path: str, start: int, length: int) -> bytes:
        return files.read(prefix + path, start, length)

    return FileSet(f"{files.shown_as}/{prefix.rstrip('/')}", sizes_bytes, read)


def adapter_files(files: FileSet, weights: HubWeights | S3Weights | PathWeights) -> FileSet:
    """Returns the two files that PEFT writes, or what a pattern takes; raises `UserError`."""
    taken = wanted(files, weights) if weights.allow_patterns else files.only({CONFIG, WEIGHTS})
    return require_whole(require_adapter(taken))


def require_adapter(files: FileSet) -> FileSet:
    """Returns files, among which are the two of an adapter; raises `UserError`."""
    missing = sorted({CONFIG, WEIGHTS} - files.sizes_bytes.keys())
    if missing:
        raise _no_adapter(
            f"{files.shown_as} has no {' and no '.join(missing)}",
            "Copy the folder that PEFT's `save_pretrained` wrote, with safetensors.",
        )
    return files


def adapter_facts(files: FileSet) -> AdapterFacts:
    """Returns what the config and the header say; raises `UserError` if vLLM loads no such."""
    small = files.sizes_bytes[CONFIG] <= _LARGEST_CONFIG_BYTES
    config = files.document(CONFIG) if small else {}
    rank, place = config.get("r"), f"{files.shown_as}/{CONFIG}"
    if config.get("peft_type", "LORA") != "LORA" or not isinstance(rank, int) or rank < 1:
        raise _no_adapter(f"{place} describes no LoRA adapter", "Only LoRA adapters are served.")
    excess = [
        name
        for name, plain in (("use_dora", False), ("modules_to_save", None), ("bias", "none"))
        if config.get(name) not in (plain, None, [])
    ]
    if excess:
        raise _no_adapter(
            f"{place} has {', '.join(excess)}, which vLLM does not load",
            "Train the adapter without it, or merge it into its base with `merge_and_unload()`.",
        )
    modules: dict[str, tuple[int, ...]] = {}
    for name, shape in _shapes(files.head(WEIGHTS)):
        match = _MODULE.fullmatch(name)
        if match is not None and match["side"] and len(shape) == 2:
            own_rank, side = shape if match["side"] == "A" else shape[::-1]
            rank = max(rank, own_rank)
            modules[match["module"]] = (*modules.get(match["module"], ()), side)
    return AdapterFacts(rank, str(config.get("base_model_name_or_path") or ""), modules)


def network_problems(
    facts: AdapterFacts, network: Mapping[str, tuple[int, ...]], base: str
) -> Iterator[Problem]:
    """Yields the problem of an adapter with a module that its base has otherwise or not at all.

    `network` has the base's modules, with the shape of plain matrices; it is empty if nothing is
    known.
    """
    wrong = []
    for module, sides in sorted(facts.modules.items()) if network else ():
        shape = network.get(module)
        if shape is None and "experts" not in module:
            wrong.append(f"{module} is not there")
        elif shape and sorted(shape) != sorted(sides):
            ours, theirs = (" x ".join(map(str, each)) for each in (sides[::-1], shape))
            wrong.append(f"{module} is {theirs} there, and {ours} in the adapter")
    if wrong:
        named = f", which was trained for {facts.base_name}," if facts.base_name else ""
        yield Problem(
            Code.ADAPTER_NETWORK,
            Kind.COMPATIBILITY,
            f"the adapter{named} does not fit the network of `{base}`: {wrong[0]}",
            "Name the model that it was trained for as `adapter_of`.",
            _FIELD,
        )


def _network(
    project: Project, base: Deployment, store: ArtifactStore
) -> dict[str, tuple[int, ...]]:
    """Returns the modules of a published base; nothing if it is not published as safetensors."""
    locked = project.lock(base.config.name).artifact(base)
    part_ = None if locked is None else locked.weights or locked.compiled
    if part_ is None:
        return {}
    prefix = S3Address.of(store.address(part_.digest, ""))
    with store.reached():
        try:
            files = file_set(store.client, prefix, objects_under(store.client, prefix))
        except UserError:
            return {}  # published elsewhere
        return _modules(files)


def _modules(files: FileSet) -> dict[str, tuple[int, ...]]:
    """Returns the modules of a checkpoint in safetensors; nothing of another."""
    found: dict[str, tuple[int, ...]] = {}
    for path in files.loaded()[1]:
        if path.endswith(".safetensors") and path in files.sizes_bytes:
            for name, shape in _shapes(files.head(path)):
                if (match := _MODULE.fullmatch(name)) is not None:
                    found.setdefault(match["module"], ())
                    if name.endswith(".weight") and len(shape) == 2:
                        found[match["module"]] = shape
    return found


def _shapes(head: bytes) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields the tensors of a safetensors file; a packed one, of integers, without its shape."""
    header = parse_json(head[8 : 8 + int.from_bytes(head[:8], "little")])
    for name, tensor in header.items():
        if name != "__metadata__":
            packed = str(tensor["dtype"]).startswith(("I", "U"))
            yield name, () if packed else tuple(tensor["shape"])


def _publish_archive(
    files: LockedPart, paths: list[str], store: ArtifactStore
) -> tuple[LockedPart, int]:
    """Publishes published files as one archive; the same files give the same bytes."""
    recipe = Recipe({"adapter": files.digest, "archive": ARCHIVE, "paths": sorted(paths)})
    if (known := store.recall(recipe)) is not None:
        return known, 0
    with tempfile.TemporaryDirectory(prefix="slipway-adapter-") as temporary:
        # Stored, not compressed: weights hardly shrink, and versions of zlib differ.
        with (
            Path(temporary, ARCHIVE).open("wb") as file,
            gzip.GzipFile("", "wb", compresslevel=0, fileobj=file, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive,
            store.reached(),
        ):
            for path in sorted(paths):
                bucket, key = store.bucket, store.place.files_prefix(files.digest) + path
                answer = store.client.get_object(Bucket=bucket, Key=key)
                info = tarfile.TarInfo(path)
                info.size = answer["ContentLength"]
                with answer["Body"] as body:
                    archive.addfile(info, body)
        snapshot = Snapshot.of(Path(temporary), "the archive")
        sent = publish_files(snapshot, snapshot.manifest, store)
    made = part(snapshot.manifest, source=files.source)
    store.remember(recipe, made)
    return made, sent


def _no_adapter(message: str, remedy: str) -> UserError:
    return UserError.of(Code.ADAPTER_FILES, message, remedy, kind=Kind.VALUE, field=_FIELD)
