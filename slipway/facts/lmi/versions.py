"""Settings that DJL Serving reads in an LMI image: server keys, options, engines, entry points.

The server silently accepts unknown keys, so only this table finds a misspelt one. It is maintained
by hand from djl-serving's sources; lmi.json, lmi_options.json and lmi_vllm.json name the file and
the reference behind each group. Nothing here is read before the first `lmi_version`.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from slipway.facts.images import UnknownFrameworkError, UnknownVersionError
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
        name: for example `tensor_parallel_degree`.
        type: how the value is parsed. `int or max` is a number or the word max. `suffixed int` is
            a number such as 4096, 4k or 4K. A list is separated by commas, a map is `k=v,k=v`;
            `unknown` where no source says.
        default: what applies when it is not set; None where nothing or the server decides, and
            where `type` is `unknown`.
        allowed: every value that is accepted; None where that is not limited to a list.
        minimum: lowest number, None where there is none.
        maximum: highest number, None where there is none.
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


@dataclass(frozen=True, slots=True)
class WeightFacts:
    """How weights are named.

    Args:
        s3: options that take an S3 prefix, the best first; two of them together are an error.
        hub: options that take an id of the Hugging Face Hub.
        ignored: options that once named weights and are no longer read.
        cache_directory: where downloads go; None where that is not under `/tmp`.
    """

    s3: tuple[str, ...]
    hub: tuple[str, ...]
    ignored: tuple[str, ...]
    cache_directory: str | None


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """Model types (`model_type` of config.json) that a handler treats specially.

    Args:
        purpose: `detected` (the engine is taken when none is set), `kernels` (run with fast
            kernels), `smoothquant` (can be quantised so) or `supported`.
        handler: as in `LmiVersion.handlers`.
        engine: the engine that has it.
        model_types: the types.
        otherwise: what happens with any other type.
    """

    purpose: str
    handler: str
    engine: str
    model_types: tuple[str, ...]
    otherwise: str


@dataclass(frozen=True, slots=True)
class Defect:
    """A combination that answers badly, or that the server takes and does not start with.

    Args:
        name: `mixed_batch_answers`, `pytorch_backend`, `rolling_batch_fails_together` or `t5_fp16`.
        handler: the handler that has it.
        condition: when, as half a sentence.
        effect: what happens, as half a sentence.
    """

    name: str
    handler: str
    condition: str
    effect: str


@dataclass(frozen=True, slots=True)
class LmiVersion:
    """One LMI image's server.

    Args:
        framework: name in images.json, for example `djl-lmi`.
        version: of DJL Serving, for example `0.36.0`.
        source: repository, reference and commit that the facts are from.
        facts_of: the version whose facts these are, where no source of this one was at hand.
        engines: accepted values of `engine`; case matters, and another one stops the server.
        embedding_engines: further engines, without Python: for text embeddings only.
        entry_points: built-in values of `option.entryPoint` that the image can run, and the handler
            behind each.
        server_keys: keys without `option.`.
        server_variables: variables of the server that no key of the file stands for. One that the
            version does not read is None.
        weights: how weights are named.
        model_families: what the handlers say of model types.
        defects: what to refuse or warn of.
        rolling_batch_engines: engines that a value of `rolling_batch` needs; those not in it run
            with any.
        reads_option_environment: whether a variable OPTION_X stands for an option that is not set.
        rolls_unless_told: whether the server turns a rolling batch on by itself.
        reads_formatters: whether a built-in handler runs the formatters of a model.py beside it.
        makes_model_of_variables: whether variables alone make the model, and it is known how.
        one_worker_options: options with which the server starts one worker.
        vllm_version: of the vLLM behind `rolling_batch` vllm and the vllm_async handler, where its
            engine arguments are options too; None where they are not.
    """

    framework: str
    version: str
    source: str
    facts_of: str | None
    engines: tuple[str, ...]
    embedding_engines: tuple[str, ...]
    entry_points: Mapping[str, str]
    server_keys: Mapping[str, OptionFacts]
    server_variables: Mapping[str, OptionFacts | None]
    weights: WeightFacts
    model_families: tuple[ModelFamily, ...]
    defects: tuple[Defect, ...]
    rolling_batch_engines: Mapping[str, tuple[str, ...]]
    reads_option_environment: bool
    rolls_unless_told: bool
    reads_formatters: bool
    makes_model_of_variables: bool
    one_worker_options: tuple[str, ...]
    vllm_version: str | None

    @property
    def handlers(self) -> tuple[str, ...]:
        """The handlers that `options_for` knows in this image."""
        return (*dict.fromkeys(self.entry_points.values()), CUSTOM)

    def default_engine(self, rolling_batch: str | None = None) -> str:
        """Returns the engine where none is set.

        Args:
            rolling_batch: the value of `option.rolling_batch`; without it the image's own engine.
        """
        return next(
            str(row["engine"])
            for row in _rows(_table("lmi/lmi.json")["default_engines"], self.version)
            if row["framework"] == self.framework
            and row.get("rolling_batch") in (None, rolling_batch)
        )

    def first_entry_point(self, engine: str) -> str | None:
        """Returns the entry point that the first server with one took for an engine, or None."""
        entry_points: Mapping[str, str] = _table("lmi/lmi.json")["first_entry_points"]
        return entry_points.get(engine)

    def precision_name(self, handler: str | None, dtype: str) -> str:
        """Returns a precision as the handler reads it.

        Args:
            handler: as in `handlers`.
            dtype: the config's name, for example `fp16`.
        """
        for row in _rows(_table("lmi/lmi.json")["precision_names"], self.version):
            if handler in row["handlers"]:
                return str(row["names"].get(dtype, dtype))
        return dtype

    def default_entry_point(
        self, engine: str = "Python", *, rolling_batch: str = "auto", has_model_id: bool = True
    ) -> str | None:
        """Returns the entry point where none is set and the model directory has no model.py.

        Args:
            engine: the value of `engine`.
            rolling_batch: the value of `option.rolling_batch`, `auto` where it is not set.
            has_model_id: whether `option.model_id` is set.

        Returns:
            The entry point, or None: then the model does not load.
        """
        for row in _table("lmi/lmi.json")["default_entry_points"]:
            if (
                _covers(row["in"], self.version)
                and row.get("engine", engine) == engine
                and row.get("framework", self.framework) == self.framework
                and row.get("rolling_batch", rolling_batch) == rolling_batch
                and (has_model_id or not row["needs_model_id"])
            ):
                return str(row["entry_point"])
        return None

    def is_open(self, handler: str) -> bool:
        """Returns whether the handler accepts unlisted options, so that they are not errors."""
        if handler == CUSTOM:
            return True
        spans = _table("lmi/lmi.json")["handlers"][handler]["open"]
        return any(_covers(span, self.version) for span in spans)

    def options_for(
        self, handler: str, rolling_batch: str | None = None
    ) -> Mapping[str, OptionFacts]:
        """Returns the options that a handler reads, including those that the server itself reads.

        Args:
            handler: one of `handlers`.
            rolling_batch: the options are those that apply with this value. With None, the options
                of every rolling batch are returned, and each says which rolling batch reads it. If
                two readings of a key differ, the wider one is returned.

        Raises:
            KeyError: the handler is not one of this image's.
        """
        if handler not in self.handlers:
            raise KeyError(handler)
        return _options(self.framework, self.version, handler, rolling_batch)


@functools.cache
def _table(name: str) -> dict[str, Any]:
    return read_table(name)


@functools.cache
def _positions() -> Mapping[str, int]:
    return {version: place for place, version in enumerate(_table("lmi/lmi.json")["versions"])}


@functools.cache
def _covers(span: str, version: str) -> bool:
    """Whether `0.21.0..0.24.0` or `0.25.0..` holds a version."""
    first, _, last = span.partition("..")
    places = _positions()
    return places[first] <= places[version] <= places.get(last, len(places))


def _rows(rows: Iterable[Mapping[str, Any]], version: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if _covers(row["in"], version)]


def _option(name: str, row: Mapping[str, Any], source: str) -> OptionFacts:
    cells = {key: cell for key, cell in row.items() if key != "in"}
    lists = {key: tuple(cell) for key, cell in cells.items() if isinstance(cell, list)}
    return OptionFacts(name=name, source=source, **{**cells, **lists})


def _server_variable(
    name: str, rows: Iterable[Mapping[str, Any]], version: str
) -> OptionFacts | None:
    found = _rows(rows, version)
    source = _table("lmi/lmi.json")["sources"]["server_variables"]
    return _option(name, found[0], source) if found else None


def _group(name: str, version: str) -> dict[str, OptionFacts]:
    """Returns the options of one group of lmi_options.json in a version."""
    table = _table("lmi/lmi_options.json")
    source = table["sources"][name]
    return {
        option: _option(option, row, source)
        for option, rows in table["options"][name].items()
        for row in _rows(rows, version)
    }


def _engine_arguments(version: str) -> dict[str, OptionFacts]:
    """Returns vLLM's own arguments, for versions that pass them on."""
    table = _table("lmi/lmi_vllm.json")
    if version not in table["vllm"]:
        return {}
    source = f"vllm {table['vllm'][version]}, vllm/engine/arg_utils.py"
    found = {
        name: OptionFacts(name, "unknown", None, source, alias_of=table["djl_names"].get(name))
        for name, spans in table["engine_arguments"].items()
        if any(_covers(span, version) for span in spans)
    }
    for name, facts in found.items():
        for row in _rows(table["argument_types"].get(name, ()), version):
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
    for argument, option in _table("lmi/lmi_vllm.json")["djl_names"].items():
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
    libraries = _table("lmi/lmi.json")["rolling_batches"]
    kept = tuple(
        batch for batch in option.allowed if framework in libraries.get(batch, (framework,))
    )
    options["rolling_batch"] = option._replace(allowed=kept)
    return kept


@functools.cache
def _options(
    framework: str, version: str, handler: str, rolling_batch: str | None
) -> Mapping[str, OptionFacts]:
    groups = _table("lmi/lmi_options.json")["options"]
    found = _group("server", version)
    if handler != CUSTOM:
        for name in _table("lmi/lmi.json")["handlers"][handler]["options"]:
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


def model_of_variables() -> tuple[tuple[str, ...], str]:
    """Returns the frameworks that make a model of variables alone, and their first version."""
    row = _table("lmi/lmi.json")["model_of_variables"]
    return tuple(row["frameworks"]), row["in"].partition("..")[0]


@functools.cache
def lmi_version(framework: str, version: str) -> LmiVersion:
    """Returns what the server of an LMI image accepts.

    Args:
        framework: name in images.json: `djl-lmi`, `djl-deepspeed`, ...
        version: version of DJL Serving.

    Raises:
        UnknownFrameworkError: no LMI image has that name.
        UnknownVersionError: there is no such image of that framework.
    """
    table = _table("lmi/lmi.json")
    if framework not in table["images"]:
        raise UnknownFrameworkError(framework, tuple(table["images"]))
    known = tuple(
        name
        for name in table["versions"]
        if any(_covers(span, name) for span in table["images"][framework])
    )
    if version not in known:
        raise UnknownVersionError(framework, version, known)
    facts_of = table["versions"][version].get("facts_of")
    at = table["versions"][facts_of or version]
    (weights,) = _rows(table["weights"], version)
    return LmiVersion(
        framework=framework,
        version=version,
        source=f"deepjavalibrary/djl-serving, {at['reference']} ({at['commit']})",
        facts_of=facts_of,
        engines=tuple(name for name, span in table["engines"].items() if _covers(span, version)),
        embedding_engines=tuple(
            name
            for name, row in table["embedding_engines"].items()
            if framework in row["frameworks"] and _covers(row["in"], version)
        ),
        entry_points=MappingProxyType(
            {
                entry_point: handler
                for handler, row in table["handlers"].items()
                if framework in row["frameworks"]
                for entry_point, spans in row["entry_points"].items()
                if any(_covers(span, version) for span in spans)
            }
        ),
        server_keys=MappingProxyType(
            {
                key: _option(key, row, table["sources"]["server_keys"])
                for key, rows in table["server_keys"].items()
                for row in _rows(rows, version)
            }
        ),
        server_variables=MappingProxyType(
            {
                name: _server_variable(name, rows, version)
                for name, rows in table["server_variables"].items()
            }
        ),
        weights=WeightFacts(
            tuple(weights["s3"]),
            tuple(weights["hub"]),
            tuple(weights["ignored"]),
            weights["cache_directory"],
        ),
        model_families=tuple(
            ModelFamily(
                row["purpose"],
                row["handler"],
                row["engine"],
                tuple(row["model_types"]),
                row["otherwise"],
            )
            for row in _rows(table["model_families"], version)
            if framework in table["handlers"][row["handler"]]["frameworks"]
        ),
        defects=tuple(
            Defect(row["name"], row["handler"], row["condition"], row["effect"])
            for row in _rows(table["defects"], version)
            if framework in table["handlers"][row["handler"]]["frameworks"]
        ),
        rolling_batch_engines=MappingProxyType(
            {
                row["rolling_batch"]: tuple(row["engines"])
                for row in _rows(table["rolling_batch_engines"], version)
            }
        ),
        reads_option_environment=_covers(table["option_environment"], version),
        rolls_unless_told=_covers(table["rolls_unless_told"], version),
        reads_formatters=_covers(table["formatters"], version),
        makes_model_of_variables=(
            framework in table["model_of_variables"]["frameworks"]
            and _covers(table["model_of_variables"]["in"], version)
        ),
        one_worker_options=tuple(
            name for row in _rows(table["one_worker_options"], version) for name in row["options"]
        ),
        vllm_version=(
            _table("lmi/lmi_vllm.json")["vllm"].get(version) if framework == "djl-lmi" else None
        ),
    )
