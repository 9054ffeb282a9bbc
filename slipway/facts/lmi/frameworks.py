"""How LMI partitions a model: the frameworks behind DJL Serving's handlers, version by version.

`lmi_frameworks.json` holds what djl-serving's sources say of each and names the file of each row.
What the other tables say already is derived from them: versions, images, engines, continuous
batching, streaming by an option, hardware, and what is legacy.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from slipway.facts import images
from slipway.facts.images import Legacy, UnknownFrameworkError, UnknownVersionError
from slipway.facts.lmi.options import rows_of, table_of
from slipway.facts.lmi.versions import LmiVersion, lmi_version

_ANY_ROLLING_BATCH = "*"
_NO_ROLLING_BATCH = "disable"
_AUTOMATIC = "auto"
_STREAMING_OPTION = "enable_streaming"
_NEURON_IMAGE = "djl-neuronx"
# What an image is, beside its registry, is the same in every region.
_ANY_REGION = "us-east-1"


class Cell(NamedTuple):
    """What one version of a framework can do in one respect.

    The value is `yes`, `no` or `unknown`, where no source says; some cells have words of their own.
    The note is half a sentence with what the value cannot say.
    """

    value: str
    source: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class AheadOfTime:
    """The command that partitions weights before they are served, with its flags.

    `engine` is the value of `engine` that the command needs; None where it takes none.
    """

    command: tuple[str, ...]
    engine: str | None
    flags: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class PartitionFramework:
    """One framework in one version of DJL Serving.

    Args:
        images: frameworks of images.json whose image of that version has it.
        tensor_parallel: whether it splits every layer over accelerators.
        pipeline_parallel: whether it makes stages of layers that work at the same time.
        layers_over_devices: how it lays whole layers on several accelerators, which then work one
            after another: `degree` (with `tensor_parallel_degree`), `device_map` (with that option,
            or with the degree and a rolling batch) or `no`.
        streaming: how tokens are streamed without a rolling batch: `enable_streaming` or `no`.
        rolling_streaming: the same with one: `output_formatter` (its value `jsonlines`), `stream`
            (a key of the request) or `no`.
        rolling_batches: values of `rolling_batch` with which requests join and leave a batch.
        rolls_always: whether they do so with every value.
        server_batches: whether its handler answers several requests that the server hands over
            together.
        model_types_without_rolling_batch: the only types (`model_type` of config.json) that load
            where the rolling batch is off; None where every type does.
        legacy: what it is, and where to go instead; None where it is living.
    """

    name: str
    title: str
    version: str
    images: tuple[str, ...]
    tensor_parallel: Cell
    pipeline_parallel: Cell
    layers_over_devices: Cell
    ahead_of_time: AheadOfTime | None
    streaming: Cell
    rolling_streaming: Cell
    rolling_batches: tuple[str, ...]
    rolls_always: bool
    server_batches: Cell
    model_types_without_rolling_batch: tuple[str, ...] | None
    cpu: Cell
    neuron: Cell
    gpu: Cell
    legacy: str | None


def _table() -> Mapping[str, Any]:
    return table_of("lmi/lmi_frameworks.json")


def row_of(rows: Iterable[Mapping[str, Any]], version: str) -> Mapping[str, Any] | None:
    """Returns the row whose span of versions, `in`, holds a version; None where none does."""
    return next(iter(rows_of(rows, version)), None)


def partition_frameworks() -> tuple[str, ...]:
    return tuple(_table()["frameworks"])


@functools.cache
def framework_images(name: str) -> Mapping[str, tuple[str, ...]]:
    """Returns the versions of DJL Serving that have a framework, oldest first, with their images.

    Raises `UnknownFrameworkError`.
    """
    found = {
        version: images_with(name, version) for version in table_of("lmi/lmi.json")["versions"]
    }
    return MappingProxyType({version: named for version, named in found.items() if named})


@functools.cache
def images_with(name: str, version: str) -> tuple[str, ...]:
    """Returns the images of one version of DJL Serving that have a framework; none for no version.

    Raises `UnknownFrameworkError`.
    """
    row = _of(name)
    # The module of a GPU's handler lies in the Neuron image too.
    runs_on_neuron = row.get("neuron", [{}])[0].get("value") == "yes"
    return tuple(
        image
        for image in images.frameworks()
        if image.startswith("djl-")
        and (image != _NEURON_IMAGE or runs_on_neuron)
        and version in images.versions(image)
        and _handlers(row, lmi_version(image, version))
    )


def framework_versions(name: str) -> tuple[str, ...]:
    return tuple(framework_images(name))


@functools.cache
def partition_framework(name: str, version: str) -> PartitionFramework:
    """Returns what a framework can do in a version of DJL Serving.

    Raises `UnknownFrameworkError`, or `UnknownVersionError` if no image of that version has it.
    """
    row = _of(name)
    named = images_with(name, version)
    if not named:
        raise UnknownVersionError(version, framework_versions(name))
    servers = [lmi_version(image, version) for image in named]
    rolling = {batch for server in servers for batch in _rolling_batches(row, server)}
    told = rolling - {_ANY_ROLLING_BATCH}
    limited = row_of(row.get("without_rolling_batch", ()), version)
    return PartitionFramework(
        name=name,
        title=row["title"],
        version=version,
        images=named,
        tensor_parallel=_cell(row, "tensor_parallel", version),
        pipeline_parallel=_cell(row, "pipeline_parallel", version),
        layers_over_devices=_cell(row, "layers_over_devices", version, absent="no"),
        ahead_of_time=_ahead_of_time(row, version),
        streaming=_streaming(row, servers),
        rolling_streaming=_rolling_streaming(version, rolls=bool(rolling)),
        rolling_batches=tuple(sorted(told - {_AUTOMATIC} or told)),
        rolls_always=_ANY_ROLLING_BATCH in rolling,
        server_batches=_cell(row, "server_batches", version),
        model_types_without_rolling_batch=tuple(limited["model_types"]) if limited else None,
        cpu=_cell(row, "cpu", version),
        neuron=_cell(row, "neuron", version, absent="no"),
        gpu=_gpu(servers),
        legacy=_legacy(row, servers),
    )


def rolling_batches_of(server: LmiVersion, engine: str, rolling_batch: str) -> tuple[str, ...]:
    """Returns what a value of `rolling_batch` may come to: the server resolves `auto` by the model.

    The value is `disable` where there is none.
    """
    if rolling_batch != _AUTOMATIC:
        return (rolling_batch,)
    for row in rows_of(_table()["auto_rolling_batch"], server.version):
        if engine in row.get("engines", [engine]):
            return tuple(row["values"])
    return (rolling_batch,)


def possible_frameworks(
    server: LmiVersion, handler: str, engine: str, rolling_batch: str
) -> tuple[str, ...]:
    """Returns the frameworks that may load the model; none where no table knows the handler.

    The value of `rolling_batch` is `disable` where there is none.
    """
    return _run_by(handler, rolling_batches_of(server, engine, rolling_batch))


@functools.cache
def _run_by(handler: str, batches: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        name
        for name, row in _table()["frameworks"].items()
        if any(batch in row["run_by"].get(handler, ()) for batch in (*batches, _ANY_ROLLING_BATCH))
    )


def _of(name: str) -> Mapping[str, Any]:
    rows = _table()["frameworks"]
    if name not in rows:
        raise UnknownFrameworkError(name, tuple(rows))
    found: Mapping[str, Any] = rows[name]
    return found


def _cell(
    row: Mapping[str, Any], key: str, version: str, *, absent: Literal["no"] | None = None
) -> Cell:
    if key not in row and absent is not None:
        return Cell(absent, row["tensor_parallel"][0]["source"])
    found = _row(row, key, version)
    return Cell(found["value"], found["source"], found.get("note"))


def _row(row: Mapping[str, Any], key: str, version: str) -> Mapping[str, Any]:
    found = row_of(row[key], version)
    if found is None:
        raise LookupError(f"{row['title']} {version} has no {key} in lmi_frameworks.json")
    return found


def _handlers(row: Mapping[str, Any], server: LmiVersion) -> tuple[str, ...]:
    return tuple(
        handler
        for handler, batches in row["run_by"].items()
        if handler in server.handlers
        and (
            _ANY_ROLLING_BATCH in batches
            or _NO_ROLLING_BATCH in batches
            or set(batches) & set(_allowed_rolling_batches(server, handler))
        )
    )


def _allowed_rolling_batches(server: LmiVersion, handler: str) -> tuple[str, ...]:
    option = server.options_for(handler).get("rolling_batch")
    return () if option is None else option.allowed or ()


def _rolling_batches(row: Mapping[str, Any], server: LmiVersion) -> set[str]:
    """Returns the values of `rolling_batch` that are this framework's, `*` for every one."""
    found: set[str] = set()
    for handler in _handlers(row, server):
        batches = row["run_by"][handler]
        allowed = set(_allowed_rolling_batches(server, handler)) - {_NO_ROLLING_BATCH}
        if handler.endswith("_async"):
            found.add(_ANY_ROLLING_BATCH)
        elif _ANY_ROLLING_BATCH in batches:
            found |= allowed
        else:
            found |= allowed & set(batches)
    return found


def _ahead_of_time(row: Mapping[str, Any], version: str) -> AheadOfTime | None:
    found = _row(row, "ahead_of_time", version)
    if found["command"] is None:
        return None
    return AheadOfTime(
        tuple(found["command"]), found["engine"], tuple(found["flags"]), found["source"]
    )


def _streaming(row: Mapping[str, Any], servers: Sequence[LmiVersion]) -> Cell:
    if _STREAMING_OPTION in row:
        return _cell(row, _STREAMING_OPTION, servers[0].version)
    for server in servers:
        for handler in _handlers(row, server):
            option = server.options_for(handler).get(_STREAMING_OPTION)
            if option is not None:
                engines = " or ".join(option.only_engines)
                note = f"with the engine {engines}" if engines else None
                return Cell(_STREAMING_OPTION, option.source, note)
    return Cell("no", "lmi_options.json: no handler of it reads enable_streaming")


def _rolling_streaming(version: str, *, rolls: bool) -> Cell:
    found = row_of(_table()["rolling_batch_streams"], version)
    if found is None or not rolls:
        return Cell("no", "lmi_options.json: it has no rolling batch")
    return Cell(found["value"], found["source"])


def _gpu(servers: Iterable[LmiVersion]) -> Cell:
    kinds = {
        images.image(server.framework, server.version, _ANY_REGION).accelerator
        for server in servers
    }
    return Cell("yes" if "gpu" in kinds else "no", "images.json: accelerator")


def _legacy(row: Mapping[str, Any], servers: Sequence[LmiVersion]) -> str | None:
    """Returns what a framework is that is not living, and where to go instead."""
    version = servers[0].version
    successor = row_of(row.get("successor", ()), version)
    if successor is not None:
        title = _of(successor["value"])["title"]
        return f"{successor['note']}: {title}"
    found: list[Legacy | None] = [
        images.image(server.framework, server.version, _ANY_REGION).legacy for server in servers
    ]
    reasons = [each for each in found if each is not None]
    if len(reasons) < len(found):
        return None
    return f"legacy: {reasons[0].framework} {reasons[0].version}"
