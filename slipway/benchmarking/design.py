"""A design's file: which levels a bench measures, with which requests, and how often."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from slipway.codes.code import Code
from slipway.config.load import load_other
from slipway.config.sections.base import Section
from slipway.errors import FieldPath, Kind, Problem, UserError, did_you_mean

TEXT, INPUT, INPUTS, OUTPUT_TOKENS = "{text}", "{input}", "{inputs}", "{output_tokens}"
"""Texts of a request that are replaced, each if it is a whole value."""

Count = Annotated[int, Field(ge=1, le=100_000)]
Rate = Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=63)]
# YAML's lists are tuples here.
Counts = Annotated[tuple[Count, ...], Field(min_length=1, strict=False)]
Rates = Annotated[tuple[Rate, ...], Field(min_length=1, strict=False)]
Names = Annotated[tuple[Name, ...], Field(min_length=1, strict=False)]


class Factors(Section):
    """The levels of each factor. Every combination of levels is a cell."""

    concurrency: Counts | None = None
    requests_per_second: Rates | None = None
    batch: Counts = (1,)
    input_tokens: Counts | None = None
    output_tokens: Counts | None = None
    variant: Names | None = None
    engine: Annotated[dict[Name, Name], Field(min_length=1)] | None = None


class Request(Section):
    """The form of a request; `body` and `input` are JSON."""

    body: Any
    input: Any = TEXT
    content_type: str = "application/json"
    stream: bool = False
    tokens_key: str | None = None


class Lengths(Section):
    distribution: Literal["uniform", "lognormal"]
    least: Count
    most: Count
    mean: Rate | None = None
    deviation: Rate | None = None


class Prompts(Section):
    """Where the texts come from: a file, or lengths with a tokenizer."""

    file: str | None = None
    tokenizer: str | None = None
    lengths: Lengths | None = None


class Published(Section):
    """Figures that somebody published for the case; nobody here measured them."""

    source: str
    hardware: str
    # Any: texts and numbers.
    rows: tuple[dict[str, Any], ...] = Field((), strict=False)
    note: str = ""


class Design(Section):
    """What `slipway bench` measures; docs/guides/bench.md describes each field."""

    description: str
    models: tuple[str, ...] = Field((), strict=False)
    factors: Factors
    request: Request
    prompts: Prompts = Prompts.model_validate({})
    trials: Annotated[int, Field(ge=1, le=1000)] = 5
    seconds: Rate = 10.0
    requests: Count = 1
    warm_up_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 2.0
    seed: int = 1
    arrivals: Literal["poisson", "constant"] | None = None
    trace: str | None = None
    connections: Count | None = None
    published: Published | None = None

    @property
    def is_open(self) -> bool:
        """Returns whether requests have times."""
        return self.trace is not None or self.factors.requests_per_second is not None


@dataclass(frozen=True)
class Cell:
    """One combination of levels, in the order of a table; None where there is no such factor."""

    engine: str | None = None
    variant: str | None = None
    batch: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    concurrency: int | None = None
    requests_per_second: float | None = None

    def levels(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}

    @property
    def load(self) -> tuple[int | None, float | None]:
        return self.concurrency, self.requests_per_second


FACTORS: Final = tuple(each.name for each in fields(Cell))
LOADS: Final = ("concurrency", "requests_per_second")


def words(name: str) -> str:
    return name.replace("_", " ")


def shown_level(value: Any) -> str:
    """Returns a level as text; nothing for a factor that a cell has not."""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def shown(levels: Mapping[str, Any]) -> str:
    """Returns levels in words: `batch 1, concurrency 4`."""
    known = {name: value for name, value in levels.items() if value is not None}
    return ", ".join(f"{words(name)} {shown_level(value)}" for name, value in known.items())


@dataclass(frozen=True)
class LoadedDesign:
    """A valid design with its file, in a project to which paths in messages are relative."""

    name: str
    design: Design
    path: Path
    root: Path

    def cells(self) -> list[Cell]:
        levels = [getattr(self.design.factors, name) or (None,) for name in FACTORS]
        return [Cell(*each) for each in itertools.product(*levels)]

    def file(self, name: str) -> Path:
        """Returns a file that the design names: beside the design, or in the project."""
        beside = self.path.parent / name
        return beside if beside.exists() else self.root / name


def shipped_designs() -> dict[str, Path]:
    folder = resources.files(__package__).joinpath("designs")
    paths = (Path(str(each)) for each in folder.iterdir() if each.name.endswith(".yaml"))
    return {path.stem: path for path in sorted(paths)}


def find_design(given: str | None, model: str, root: Path, folder: Path) -> LoadedDesign:
    """Returns a design by its file in a folder or by its name; for None that of the model."""
    shipped = shipped_designs()
    known = f"one of {', '.join(shipped)}"
    if given is None:
        for path in shipped.values():
            if model in (loaded := load_design(path, root)).design.models:
                return loaded
        raise UserError.of(
            Code.BENCH_INPUT,
            f"no design ships for {model}",
            f"Name one with `--design`: a file, or {known}.",
        )
    path = shipped.get(given, folder / given)
    if path.suffix not in (".yaml", ".yml"):
        raise UserError.of(
            Code.BENCH_INPUT,
            f"there is no design {given!r}",
            f"{did_you_mean(given, shipped)}Name a YAML file, or {known}.",
        )
    return load_design(path, root)


def load_design(path: Path, root: Path) -> LoadedDesign:
    """Reads a design; raises `UserError` with every problem of its file."""
    design, document = load_other(Design, path, root)
    problems = [
        Problem(Code.BENCH_INPUT, Kind.COMPATIBILITY, message, remedy, field).at(
            document.locate(field)
        )
        for field, message, remedy in _contradictions(design)
    ]
    if problems:
        raise UserError(problems)
    return LoadedDesign(path.stem, design, path, root)


def _contradictions(design: Design) -> Iterator[tuple[FieldPath, str, str]]:
    """Yields the field, what is wrong with it, and the remedy."""
    factors, lengths = design.factors, design.prompts.lengths
    yield from _not_one(
        design,
        ("factors.concurrency", "factors.requests_per_second", "trace"),
        ("factors", "nothing says how many requests are sent", "two loops are given"),
        "Give one of `factors.concurrency` (closed loop), `factors.requests_per_second` and "
        "`trace` (open loop).",
    )
    for name in ("arrivals", "connections"):
        if getattr(design, name) is not None and not design.is_open:
            yield (name,), "has no effect in a closed loop", "Remove this line."
    for name in ("arrivals", "seconds"):
        if design.trace is not None and name in design.model_fields_set:
            yield (name,), "has no effect: the trace has the times", "Remove this line."
    if design.is_open and design.requests > 1:
        yield ("requests",), "has no effect in an open loop", "Remove this line."
    if factors.variant is not None and factors.engine is not None:
        message = "both `variant` and `engine` choose a variant"
        yield ("factors", "engine"), message, "Remove one of the two."
    for name in FACTORS:
        levels = getattr(factors, name) or ()
        if len(set(levels)) < len(levels):
            yield ("factors", name), "a level is there twice", "Give each level once."
    yield from _contradictions_of_requests(design)
    if lengths is not None:
        is_lognormal = lengths.distribution == "lognormal"
        if any((each is not None) != is_lognormal for each in (lengths.mean, lengths.deviation)):
            yield (
                ("prompts", "lengths"),
                "`mean` and `deviation` belong to a lognormal distribution, and only to it",
                "Give both with `lognormal`, and neither with `uniform`.",
            )
        if lengths.least > lengths.most:
            message = f"{lengths.most} is below `least`, {lengths.least}"
            yield ("prompts", "lengths", "most"), message, "Give at least as many tokens."


def _contradictions_of_requests(design: Design) -> Iterator[tuple[FieldPath, str, str]]:
    factors, request = design.factors, design.request
    used = set(_texts(request.body))
    whole = used & {INPUT, INPUTS}
    if len(whole) != 1:
        yield (
            ("request", "body"),
            "has both `{input}` and `{inputs}`" if whole else "has no input",
            "Write one of the texts `{inputs}` (a list of `batch` inputs) and `{input}` as a "
            "whole value.",
        )
    if whole == {INPUT} and set(factors.batch) != {1}:
        message = "`{input}` in `request.body` is one input"
        yield ("factors", "batch"), message, "Write `{inputs}` there, or remove `batch`."
    if (OUTPUT_TOKENS in used) != (factors.output_tokens is not None):
        yield (
            ("factors", "output_tokens") if factors.output_tokens else ("request", "body"),
            "`factors.output_tokens` and `{output_tokens}` in `request.body` belong together",
            "Give both, or neither.",
        )
    yield from _not_one(
        design,
        ("prompts.file", "prompts.lengths", "factors.input_tokens"),
        ("prompts", "nothing says what the texts are", "two sources of texts are given"),
        "Give one of `prompts.file`, `prompts.lengths` and `factors.input_tokens`.",
    )
    is_whole_input = (design.prompts.file or "").endswith(".jsonl")
    if not is_whole_input and TEXT not in set(_texts(request.input)):
        yield ("request", "input"), "has no text", f"Write `{TEXT}` as a whole value."


def _not_one(
    design: Design, names: Sequence[str], messages: tuple[str, str, str], remedy: str
) -> Iterator[tuple[FieldPath, str, str]]:
    """Yields the contradiction of fields of which exactly one must be given."""
    section, none, several = messages
    given = [name for name in names if attrgetter(name)(design) is not None]
    if not given:
        yield (section,), none, remedy
    elif len(given) > 1:
        yield tuple(given[1].split(".")), several, remedy


def _texts(content: Any) -> Iterator[str]:
    """Yields every text in a JSON value, except keys."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping | list | tuple):
        for value in content.values() if isinstance(content, Mapping) else content:
            yield from _texts(value)
