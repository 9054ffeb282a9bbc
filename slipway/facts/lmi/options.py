"""The options that a version of DJL Serving reads in serving.properties, and their values."""

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from slipway.facts.tables import read_table

CUSTOM = "custom"
"""The handler of a model.py of one's own: the server reads its keys, the rest is passed on."""

OptionType = Literal[
    "int",
    "float",
    "bool",
    "str",
    "path",
    "int or max",
    "suffixed int",
    "suffixed int or auto",
    "int list",
    "float list",
    "map",
    "json",
    "unknown",
]


class OptionFacts(NamedTuple):
    """One key of serving.properties, without its `option.`.

    A version has up to 280 of them, and a frozen dataclass takes several times as long to make.

    Args:
        type: how the value is parsed. `int or max` is a number or the word max. `suffixed int` is
            a number such as 4096, 4k or 4K. A list is separated by commas, a map is `k=v,k=v`;
            `unknown` where no source says.
        default: what applies when it is not set; None where nothing or the server decides, and
            where `type` is `unknown`.
        allowed: every value that is accepted; None where that is not limited to a list.
        unit: `seconds`, `milliseconds` or `MB`, where it has one.
        status: `read`, `deprecated` (read, better replaced) or `ignored`.
        note: what the other cells cannot say, as half a sentence.
        alias_of: the key that this one is another name of.
        only_engines: engines under which it may be set; empty means every one.
        required_by_engines: engines that do not start without it.
        rolling_batches: values of `rolling_batch` with which it is read; empty means always.
        source: where in djl-serving (or vLLM) that stands.
    """

    name: str
    type: OptionType
    default: str | float | bool | None
    source: str
    allowed: tuple[str, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    unit: str | None = None
    status: Literal["read", "deprecated", "ignored"] = "read"
    note: str | None = None
    alias_of: str | None = None
    only_engines: tuple[str, ...] = ()
    required_by_engines: tuple[str, ...] = ()
    rolling_batches: tuple[str, ...] = ()


@functools.cache
def table_of(name: str) -> dict[str, Any]:
    """Returns a table of facts, read once, by its path below slipway/facts."""
    return read_table(name)


@functools.cache
def _positions() -> Mapping[str, int]:
    return {version: place for place, version in enumerate(table_of("lmi/lmi.json")["versions"])}


@functools.cache
def covers(span: str, version: str) -> bool:
    """Returns whether `0.21.0..0.24.0`, or `0.25.0..` without an end, holds a version."""
    first, _, last = span.partition("..")
    places = _positions()
    return places[first] <= places[version] <= places.get(last, len(places))


def rows_of(rows: Iterable[Mapping[str, Any]], version: str) -> list[Mapping[str, Any]]:
    """Returns the rows of a table whose span, `in`, holds a version."""
    return [row for row in rows if covers(row["in"], version)]


def cells_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the cells of a row without its span, as fields of what the row tells of."""
    cells = {key: cell for key, cell in row.items() if key != "in"}
    return cells | {key: tuple(cell) for key, cell in cells.items() if isinstance(cell, list)}


def option_of(name: str, row: Mapping[str, Any], source: str) -> OptionFacts:
    return OptionFacts(name=name, source=source, **cells_of(row))


def _group(name: str, version: str) -> dict[str, OptionFacts]:
    table = table_of("lmi/lmi_options.json")
    source = table["sources"][name]
    return {
        option: option_of(option, row, source)
        for option, rows in table["options"][name].items()
        for row in rows_of(rows, version)
    }


def _engine_arguments(version: str) -> dict[str, OptionFacts]:
    """Returns vLLM's own arguments, for versions that pass them on."""
    table = table_of("lmi/lmi_vllm.json")
    image = table_of("images.json")["images"]["djl-lmi"].get(version, {"components": {}})
    source = f"vllm {image['components'].get('vllm', 'unknown')}, vllm/engine/arg_utils.py"
    found = {
        name: OptionFacts(name, "unknown", None, source, alias_of=table["djl_names"].get(name))
        for name, spans in table["engine_arguments"].items()
        if any(covers(span, version) for span in spans)
    }
    for name, facts in found.items():
        for row in rows_of(table["argument_types"].get(name, ()), version):
            cells = {key: cell for key, cell in row.items() if key not in ("in", "allowed")}
            allowed = tuple(row["allowed"]) if "allowed" in row else None
            found[name] = facts._replace(**cells, allowed=allowed)
    return found


def _over_arguments(
    arguments: Mapping[str, OptionFacts], read: Mapping[str, OptionFacts]
) -> dict[str, OptionFacts]:
    """Returns vLLM's arguments with the options that the handler itself knows laid over them.

    An option that the handler passes on by another name has the choices of vLLM's argument.
    """
    found = {**arguments, **read}
    for argument, option in table_of("lmi/lmi_vllm.json")["djl_names"].items():
        choices = arguments[argument].allowed if argument in arguments else None
        for name in (argument, option):
            if choices is not None and name in read and read[name].allowed is None:
                found[name] = read[name]._replace(allowed=choices)
    return found


def _widened(one: OptionFacts, other: OptionFacts) -> OptionFacts:
    """Returns a reading of an option that accepts what either of two accepts."""
    both = one.allowed is not None and other.allowed is not None
    allowed = tuple(dict.fromkeys((*(one.allowed or ()), *(other.allowed or ()))))
    return one._replace(
        type=one.type if one.type == other.type else "unknown",
        allowed=allowed if both else None,
        minimum=one.minimum if one.minimum == other.minimum else None,
        maximum=one.maximum if one.maximum == other.maximum else None,
        note=one.note if one.note == other.note else None,
    )


def _limit_rolling_batches(framework: str, options: dict[str, OptionFacts]) -> tuple[str, ...]:
    """Leaves those values of `rolling_batch` that the image has the library of; returns them."""
    option = options.get("rolling_batch")
    if option is None or option.allowed is None:
        return ()
    libraries = table_of("lmi/lmi.json")["rolling_batches"]
    kept = tuple(
        batch for batch in option.allowed if framework in libraries.get(batch, (framework,))
    )
    options["rolling_batch"] = option._replace(allowed=kept)
    return kept


@functools.cache
def options_of(
    framework: str, version: str, handler: str, rolling_batch: str | None
) -> Mapping[str, OptionFacts]:
    """Returns the options that a handler of an image reads, by name in order.

    See `LmiVersion.options_for` for `rolling_batch`.
    """
    groups = table_of("lmi/lmi_options.json")["options"]
    found = _group("server", version)
    if handler != CUSTOM:
        for name in table_of("lmi/lmi.json")["handlers"][handler]["options"]:
            found |= _group(name, version)
    if handler == "vllm_async":
        found = _over_arguments(_engine_arguments(version), found)
    batches = _limit_rolling_batches(framework, found)
    always = dict(found)
    for batch in batches:
        if batch not in groups or handler == "vllm_async" or rolling_batch not in (None, batch):
            continue
        read = _group(batch, version)
        if batch == "vllm":
            read = _over_arguments(_engine_arguments(version), read)
        for name, facts in read.items():
            if rolling_batch is not None:
                found[name] = facts
            elif name not in found:
                found[name] = facts._replace(rolling_batches=(batch,))
            else:
                known = found[name]
                batches_of = () if name in always else (*known.rolling_batches, batch)
                found[name] = _widened(known, facts)._replace(rolling_batches=batches_of)
    return MappingProxyType(dict(sorted(found.items())))
