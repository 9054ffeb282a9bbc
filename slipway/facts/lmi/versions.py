"""Settings that DJL Serving reads in an LMI image: server keys, options, engines, entry points.

The server silently accepts unknown keys, so only this table finds a misspelt one. It is maintained
by hand from djl-serving's sources; lmi.json, lmi_options.json and lmi_vllm.json name the file and
the reference behind each group. Nothing here is read before the first `lmi_version`.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from slipway.facts.images import (
    UnknownFrameworkError,
    UnknownVersionError,
    runs_on,
    versions,
)
from slipway.facts.instances import Accelerator
from slipway.facts.lmi.options import (
    CUSTOM,
    OptionFacts,
    cells_of,
    covers,
    option_of,
    options_of,
    rows_of,
    table_of,
)


@dataclass(frozen=True, slots=True)
class WeightFacts:
    """How weights are named.

    Args:
        s3: options that take an S3 prefix, the best first; two of them together are an error.
        cache_directory: where downloads go; None where that is not under `/tmp`.
    """

    s3: tuple[str, ...]
    cache_directory: str | None


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """Model types (`model_type` of config.json) that a handler treats specially.

    Args:
        purpose: `detected` (the engine is taken when none is set), `kernels` (run with fast
            kernels), `smoothquant` (can be quantised so) or `supported`.
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

    The name is `mixed_batch_answers`, `pytorch_backend`, `rolling_batch_fails_together` or
    `t5_fp16`. Condition and effect are half a sentence each.
    """

    name: str
    handler: str
    condition: str
    effect: str


@dataclass(frozen=True, slots=True)
class LmiVersion:
    """One LMI image's server.

    Args:
        source: repository, reference and commit that the facts are from.
        facts_of: the version whose facts these are, where no source of this one was at hand.
        engines: accepted values of `engine`; case matters, and another one stops the server.
        embedding_engines: further engines, without Python: for text embeddings only.
        entry_points: built-in values of `option.entryPoint` that the image can run, and the handler
            behind each.
        server_keys: keys without `option.`.
        server_variables: variables of the server that no key of the file stands for. One that the
            version does not read is None.
        rolling_batch_engines: engines that a value of `rolling_batch` needs; those not in it run
            with any.
        reads_option_environment: whether a variable OPTION_X stands for an option that is not set.
        rolls_unless_told: whether the server turns a rolling batch on by itself.
        reads_formatters: whether a built-in handler runs the formatters of a model.py beside it.
        makes_model_of_variables: whether variables alone make the model, and it is known how.
        one_worker_options: options with which the server starts one worker.
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

    @property
    def handlers(self) -> tuple[str, ...]:
        return (*dict.fromkeys(self.entry_points.values()), CUSTOM)

    def default_engine(self, rolling_batch: str | None = None) -> str:
        """Returns the engine where none is set; without a rolling batch, it is the image's own."""
        return next(
            str(row["engine"])
            for row in rows_of(table_of("lmi/lmi.json")["default_engines"], self.version)
            if row["framework"] == self.framework
            and row.get("rolling_batch") in (None, rolling_batch)
        )

    def first_entry_point(self, engine: str) -> str | None:
        """Returns the entry point that the first server with one took for an engine, or None."""
        entry_points: Mapping[str, str] = table_of("lmi/lmi.json")["first_entry_points"]
        return entry_points.get(engine)

    def precision_name(self, handler: str | None, dtype: str) -> str:
        for row in rows_of(table_of("lmi/lmi.json")["precision_names"], self.version):
            if handler in row["handlers"]:
                return str(row["names"].get(dtype, dtype))
        return dtype

    def default_entry_point(
        self, engine: str = "Python", *, rolling_batch: str = "auto", has_model_id: bool = True
    ) -> str | None:
        """Returns the entry point where none is set and the model directory has no model.py.

        With None the model does not load. `rolling_batch` is `auto` where the option is not set.
        """
        for row in table_of("lmi/lmi.json")["default_entry_points"]:
            if (
                covers(row["in"], self.version)
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
        spans = table_of("lmi/lmi.json")["handlers"][handler]["open"]
        return any(covers(span, self.version) for span in spans)

    def options_for(
        self, handler: str, rolling_batch: str | None = None
    ) -> Mapping[str, OptionFacts]:
        """Returns the options that a handler reads, including those that the server itself reads.

        The options are those that apply with this value of `rolling_batch`. With None, the options
        of every rolling batch are returned, and each says which rolling batch reads it. If two
        readings of a key differ, the wider one is returned. Raises `KeyError` for a handler of
        another image.
        """
        if handler not in self.handlers:
            raise KeyError(handler)
        return options_of(self.framework, self.version, handler, rolling_batch)


def _server_variable(
    name: str, rows: Iterable[Mapping[str, Any]], version: str
) -> OptionFacts | None:
    found = rows_of(rows, version)
    source = table_of("lmi/lmi.json")["sources"]["server_variables"]
    return option_of(name, found[0], source) if found else None


def model_of_variables() -> tuple[tuple[str, ...], str]:
    """Returns the frameworks that make a model of variables alone, and their first version."""
    row = table_of("lmi/lmi.json")["model_of_variables"]
    return tuple(row["frameworks"]), row["in"].partition("..")[0]


def usable_versions(framework: str, gpu: Accelerator | None = None) -> list[str]:
    """Returns the versions to choose from where the user names none, oldest first.

    The facts of each are from its own sources, and none is known not to run on the GPU.
    """
    named = [name for name in versions(framework) if lmi_version(framework, name).facts_of is None]
    capability = gpu.compute_capability if gpu else None
    unfit = [name for name in named if capability and runs_on(framework, name, capability) is False]
    return [name for name in named if name not in unfit] or named


@functools.cache
def lmi_version(framework: str, version: str) -> LmiVersion:
    """Returns what the server of an LMI image accepts.

    Raises `UnknownFrameworkError`, or `UnknownVersionError` if the framework has no such image.
    """
    table = table_of("lmi/lmi.json")
    if framework not in table["images"]:
        raise UnknownFrameworkError(framework, tuple(table["images"]))
    known = tuple(
        name
        for name in table["versions"]
        if any(covers(span, name) for span in table["images"][framework])
    )
    if version not in known:
        raise UnknownVersionError(version, known)
    facts_of = table["versions"][version].get("facts_of")
    at = table["versions"][facts_of or version]
    (weights,) = rows_of(table["weights"], version)
    return LmiVersion(
        framework=framework,
        version=version,
        source=f"deepjavalibrary/djl-serving, {at['reference']} ({at['commit']})",
        facts_of=facts_of,
        engines=tuple(name for name, span in table["engines"].items() if covers(span, version)),
        embedding_engines=tuple(
            name
            for name, row in table["embedding_engines"].items()
            if framework in row["frameworks"] and covers(row["in"], version)
        ),
        entry_points=MappingProxyType(
            {
                entry_point: handler
                for handler, row in table["handlers"].items()
                if framework in row["frameworks"]
                for entry_point, spans in row["entry_points"].items()
                if any(covers(span, version) for span in spans)
            }
        ),
        server_keys=MappingProxyType(
            {
                key: option_of(key, row, table["sources"]["server_keys"])
                for key, rows in table["server_keys"].items()
                for row in rows_of(rows, version)
            }
        ),
        server_variables=MappingProxyType(
            {
                name: _server_variable(name, rows, version)
                for name, rows in table["server_variables"].items()
            }
        ),
        weights=WeightFacts(tuple(weights["s3"]), weights["cache_directory"]),
        model_families=tuple(
            ModelFamily(**cells_of(row))
            for row in rows_of(table["model_families"], version)
            if framework in table["handlers"][row["handler"]]["frameworks"]
        ),
        defects=tuple(
            Defect(**cells_of(row))
            for row in rows_of(table["defects"], version)
            if framework in table["handlers"][row["handler"]]["frameworks"]
        ),
        rolling_batch_engines=MappingProxyType(
            {
                row["rolling_batch"]: tuple(row["engines"])
                for row in rows_of(table["rolling_batch_engines"], version)
            }
        ),
        reads_option_environment=covers(table["option_environment"], version),
        rolls_unless_told=covers(table["rolls_unless_told"], version),
        reads_formatters=covers(table["formatters"], version),
        makes_model_of_variables=(
            framework in table["model_of_variables"]["frameworks"]
            and covers(table["model_of_variables"]["in"], version)
        ),
        one_worker_options=tuple(
            name for row in rows_of(table["one_worker_options"], version) for name in row["options"]
        ),
    )
