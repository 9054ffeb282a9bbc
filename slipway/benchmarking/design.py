"""A design's file: which levels a bench measures, with which requests, and how often."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

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

    concurrency: Counts | None = Field(
        None, description="Closed loop: clients with a request under way.", examples=[[1, 2, 4]]
    )
    requests_per_second: Rates | None = Field(
        None, description="Open loop: mean rates of the requests.", examples=[[10, 20]]
    )
    batch: Counts = Field((1,), description="Inputs of each request.", examples=[[1, 8]])
    input_tokens: Counts | None = Field(
        None, description="Tokens of each input's text.", examples=[[64, 512]]
    )
    output_tokens: Counts | None = Field(
        None, description="Tokens that each input asks for.", examples=[[16, 128]]
    )
    variant: Names | None = Field(
        None, description="Production variants that are asked by name.", examples=[["main"]]
    )
    engine: Annotated[dict[Name, Name], Field(min_length=1)] | None = Field(
        None,
        description="Names of engines, each with the production variant that runs it.",
        examples=[{"vllm": "main", "trtllm": "candidate"}],
    )


class Request(Section):
    """The form of a request."""

    # Any: JSON.
    body: Any = Field(
        description="The JSON of a request. `{inputs}` becomes a list, `{input}` one input.",
        examples=[{"inputs": INPUTS}],
    )
    input: Any = Field(TEXT, description="One input. `{text}` becomes a text.", examples=[TEXT])
    content_type: str = Field("application/json", description="Content type of a request.")
    stream: bool = Field(False, description="Whether the answer comes in parts.")
    tokens_key: str | None = Field(
        None,
        description="Key of the answer's generated texts, or of numbers of tokens.",
        examples=["generated_text"],
    )


class Lengths(Section):
    """Tokens of the texts, drawn anew for each text."""

    distribution: Literal["uniform", "lognormal"] = Field(description="How lengths vary.")
    least: Count = Field(description="Shortest text, in tokens.", examples=[16])
    most: Count = Field(description="Longest text, in tokens.", examples=[512])
    mean: Rate | None = Field(None, description="Mean of a lognormal distribution, in tokens.")
    deviation: Rate | None = Field(
        None, description="Standard deviation of a lognormal distribution, in tokens."
    )


class Prompts(Section):
    """Where the texts come from: a file, or lengths with a tokenizer."""

    file: str | None = Field(
        None,
        description="File with a text in each line. In a `.jsonl` file a line is a whole input.",
        examples=["prompts.txt"],
    )
    tokenizer: str | None = Field(
        None,
        description="tokenizer.json. Default: the one beside the model's sample or weights.",
        examples=["samples/gpt2-autocomplete/model/tokenizer.json"],
    )
    lengths: Lengths | None = Field(None, description="Lengths that differ from text to text.")


class Published(Section):
    """Figures that somebody published for the case; nobody here measured them."""

    source: str = Field(description="Address of the source.")
    hardware: str = Field(description="What they were measured on.")
    # Any: texts and numbers.
    rows: tuple[dict[str, Any], ...] = Field(
        (), strict=False, description="The rows of the source's table."
    )
    note: str = Field("", description="What the rows do not say.")


class Design(Section):
    """What `slipway bench` measures."""

    description: str = Field(description="What the design is for, in one sentence.")
    models: tuple[str, ...] = Field(
        (), strict=False, description="Models that it is the default of."
    )
    factors: Factors = Field(description="The levels that are measured.")
    request: Request = Field(description="The form of a request.")
    prompts: Prompts = Field(Prompts.model_validate({}), description="Where the texts come from.")
    trials: Annotated[int, Field(ge=1, le=1000)] = Field(
        5, description="Trials of each cell. Intervals need at least 5.", examples=[5]
    )
    seconds: Rate = Field(10.0, description="Least time of each trial.", examples=[10])
    requests: Count = Field(
        1, description="Closed loop: least number of requests of each client.", examples=[20]
    )
    warm_up_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = Field(
        2.0, description="Time before each trial that does not count.", examples=[2]
    )
    seed: int = Field(1, description="Of the order, the texts and the arrivals.", examples=[1])
    arrivals: Literal["poisson", "constant"] | None = Field(
        None, description="Open loop: how requests follow each other. Default: poisson."
    )
    trace: str | None = Field(
        None,
        description="Open loop: CSV file with the second of each request, in place of a rate.",
        examples=["trace.csv"],
    )
    connections: Count | None = Field(
        None, description="Open loop: most requests under way. Default: 256.", examples=[256]
    )
    published: Published | None = Field(None, description="Published figures of the case.")

    @property
    def is_open(self) -> bool:
        """Returns whether requests have times."""
        return self.trace is not None or self.factors.requests_per_second is not None


@dataclass(frozen=True)
class Cell:
    """One combination of levels; None where the design has no such factor."""

    batch: int
    concurrency: int | None = None
    requests_per_second: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    variant: str | None = None
    engine: str | None = None

    def levels(self) -> dict[str, Any]:
        """Returns the factors that the cell has, with their levels."""
        order = ("engine", "variant", "batch", "input_tokens", "output_tokens")
        names = (*order, "concurrency", "requests_per_second")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class LoadedDesign:
    """A valid design.

    Args:
        name: of a shipped design, or the file's stem.
        design: its content.
        path: the file, which other files are named relative to.
    """

    name: str
    design: Design
    path: Path

    def cells(self) -> list[Cell]:
        """Returns every combination of levels."""
        found = self.design.factors
        factors: Mapping[str, Sequence[Any]] = {
            "batch": found.batch,
            "concurrency": found.concurrency or (None,),
            "requests_per_second": found.requests_per_second or (None,),
            "input_tokens": found.input_tokens or (None,),
            "output_tokens": found.output_tokens or (None,),
            "variant": found.variant or (None,),
            "engine": tuple(found.engine or (None,)),
        }
        levels = itertools.product(*factors.values())
        return [Cell(**dict(zip(factors, each, strict=True))) for each in levels]


def shipped_designs() -> dict[str, Path]:
    """Returns the files of the designs that ship, by name."""
    folder = resources.files(__package__).joinpath("designs")
    paths = (Path(str(each)) for each in folder.iterdir() if each.name.endswith(".yaml"))
    return {path.stem: path for path in sorted(paths)}


def find_design(given: str | None, model: str, root: Path, folder: Path) -> LoadedDesign:
    """Returns a design by its file or its name, or the shipped one of a model.

    Args:
        given: a file's name, or the name of a shipped design; None for the model's.
        model: name of the model.
        root: the project, to which paths in messages are relative.
        folder: that a relative file name starts in.

    Raises:
        UserError: there is no such design, or every problem of its file.
    """
    shipped = shipped_designs()
    if given is None:
        for path in shipped.values():
            if model in (loaded := load_design(path, root)).design.models:
                return loaded
        raise UserError.of(
            Code.BENCH_INPUT,
            f"no design ships for {model}",
            f"Name one with `--design`: a file, or one of {', '.join(shipped)}.",
        )
    if given in shipped:
        return load_design(shipped[given], root)
    path = folder / given
    if path.suffix not in (".yaml", ".yml"):
        raise UserError.of(
            Code.BENCH_INPUT,
            f"there is no design {given!r}",
            f"{did_you_mean(given, shipped)}Name a YAML file, or one of {', '.join(shipped)}.",
        )
    return load_design(path, root)


def load_design(path: Path, root: Path) -> LoadedDesign:
    """Reads a design.

    Raises:
        UserError: every problem of the file.
    """
    design, document = load_other(Design, path, root)
    problems = [
        Problem(Code.BENCH_INPUT, Kind.COMPATIBILITY, message, remedy, field).at(
            document.locate(field)
        )
        for field, message, remedy in _contradictions(design)
    ]
    if problems:
        raise UserError(problems)
    return LoadedDesign(path.stem, design, path)


def _contradictions(design: Design) -> Iterator[tuple[FieldPath, str, str]]:
    factors, prompts = design.factors, design.prompts
    loops = {
        ("factors", "concurrency"): factors.concurrency,
        ("factors", "requests_per_second"): factors.requests_per_second,
        ("trace",): design.trace,
    }
    given = [field for field, value in loops.items() if value is not None]
    if len(given) != 1:
        yield (
            given[1] if given else ("factors",),
            "two loops are given" if given else "nothing says how many requests are sent",
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
        yield (
            ("factors", "engine"),
            "both `variant` and `engine` choose a variant",
            "Remove one of the two.",
        )
    for name in ("concurrency", "requests_per_second", "batch", "input_tokens", "output_tokens"):
        levels = getattr(factors, name) or ()
        if len(set(levels)) < len(levels):
            yield ("factors", name), "a level is there twice", "Give each level once."
    yield from _contradictions_of_requests(design)
    if prompts.lengths is not None:
        shape = (prompts.lengths.mean, prompts.lengths.deviation)
        is_lognormal = prompts.lengths.distribution == "lognormal"
        if any((value is not None) != is_lognormal for value in shape):
            yield (
                ("prompts", "lengths"),
                "`mean` and `deviation` belong to a lognormal distribution, and only to it",
                "Give both with `lognormal`, and neither with `uniform`.",
            )
        if prompts.lengths.least > prompts.lengths.most:
            yield (
                ("prompts", "lengths", "most"),
                f"{prompts.lengths.most} is below `least`, {prompts.lengths.least}",
                "Give at least as many tokens.",
            )


def _contradictions_of_requests(design: Design) -> Iterator[tuple[FieldPath, str, str]]:
    factors, prompts, request = design.factors, design.prompts, design.request
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
        yield (
            ("factors", "batch"),
            "`{input}` in `request.body` is one input",
            "Write `{inputs}` there, or remove `batch`.",
        )
    if (OUTPUT_TOKENS in used) != (factors.output_tokens is not None):
        yield (
            ("factors", "output_tokens") if factors.output_tokens else ("request", "body"),
            "`factors.output_tokens` and `{output_tokens}` in `request.body` belong together",
            "Give both, or neither.",
        )
    sources = {
        ("prompts", "file"): prompts.file,
        ("prompts", "lengths"): prompts.lengths,
        ("factors", "input_tokens"): factors.input_tokens,
    }
    given = [field for field, value in sources.items() if value is not None]
    if len(given) != 1:
        yield (
            given[1] if given else ("prompts",),
            "two sources of texts are given" if given else "nothing says what the texts are",
            "Give one of `prompts.file`, `prompts.lengths` and `factors.input_tokens`.",
        )
    if not (prompts.file or "").endswith(".jsonl") and TEXT not in set(_texts(request.input)):
        yield ("request", "input"), "has no text", f"Write `{TEXT}` as a whole value."


def _texts(content: Any) -> Iterator[str]:
    """Yields every text in a JSON value, except keys."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for value in content.values():
            yield from _texts(value)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _texts(value)
