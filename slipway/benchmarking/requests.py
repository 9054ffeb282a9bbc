"""The requests of a cell: a design's form, filled with texts of a file or of given lengths."""

import itertools
import json
import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.benchmarking.design import (
    INPUT,
    INPUTS,
    OUTPUT_TOKENS,
    TEXT,
    Cell,
    Lengths,
    LoadedDesign,
)
from slipway.codes.code import Code
from slipway.config.schema import ModelConfig
from slipway.errors import Kind, Location, Problem, UserError, relative
from slipway.json_text import parse_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

REQUESTS = 64
"""Different requests of a cell, which are sent in turn."""

_TRIES = 50


def find_tokenizer(
    loaded: LoadedDesign, config: ModelConfig | None, artifacts: str
) -> "tuple[Tokenizer | None, str]":
    """Returns the design's or the model's tokenizer, and where it is or why there is none."""
    named = loaded.design.prompts.tokenizer
    if named is not None:
        path = loaded.file(named)
    else:
        given = config and config.artifacts
        source = given and (given.sample if artifacts == "sample" else given.weights)
        folder = getattr(source, "path", None)
        if not folder:
            return None, "the model's files are not on this machine"
        path = loaded.root / folder / "tokenizer.json"
    shown = relative(path, loaded.root)
    if not path.is_file():
        if named is None:
            return None, f"there is no {shown}"
        raise _no_tokenizer(f"there is no {shown}")
    # Imported when it is needed: it takes its time.
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path)), shown
    except Exception as error:  # the library raises nothing narrower
        raise _no_tokenizer(f"{shown} is no tokenizer: {error}") from None


def _no_tokenizer(reason: str) -> UserError:
    return UserError.of(
        Code.BENCH_INPUT,
        f"lengths in tokens need the model's tokenizer: {reason}",
        "Name its tokenizer.json as `prompts.tokenizer`, or give texts as `prompts.file`.",
    )


def text_of(count: int, tokenizer: "Tokenizer", generator: random.Random) -> str:
    """Returns random words of exactly so many tokens, without special ones; raises `UserError`."""
    for _ in range(_TRIES):
        text = " ".join(itertools.islice(_words(tokenizer, generator), count))
        # Cutting a text may change its last token, so it is looked at again.
        for _ in range(3):
            found = tokenizer.encode(text, add_special_tokens=False)
            if len(found.ids) == count:
                return text
            if len(found.ids) < count:
                break
            text = text[: found.offsets[count - 1][1]]
    raise _no_tokenizer(f"it gives no text of {count} tokens")


def _words(tokenizer: "Tokenizer", generator: random.Random) -> Iterator[str]:
    size = tokenizer.get_vocab_size()
    for _ in range(size * _TRIES):
        word = tokenizer.decode([generator.randrange(size)]).strip()
        if word.isalpha():
            yield word


def make_bodies(
    loaded: LoadedDesign, cell: Cell, tokenizer: "Tokenizer | None", missing: str
) -> list[bytes]:
    """Returns the requests of a cell, the same for the same seed.

    `missing` says why there is no tokenizer.
    """
    form = loaded.design.request
    inputs = _inputs(loaded, cell, tokenizer, missing)
    bodies = []
    for _ in range(REQUESTS):
        given = list(itertools.islice(inputs, cell.batch))
        values = {INPUTS: given, INPUT: given[0], OUTPUT_TOKENS: cell.output_tokens}
        bodies.append(json.dumps(_replaced(form.body, values)).encode())
    return bodies


# Any: JSON.
def _inputs(
    loaded: LoadedDesign, cell: Cell, tokenizer: "Tokenizer | None", missing: str
) -> Iterator[Any]:
    """Yields inputs without an end."""
    prompts, form = loaded.design.prompts, loaded.design.request.input
    if prompts.file is not None:
        path = loaded.file(prompts.file)
        for each in itertools.cycle(read_prompts(path, loaded.root)):
            yield each if path.suffix == ".jsonl" else _replaced(form, {TEXT: each})
    if tokenizer is None:
        raise _no_tokenizer(missing)
    generator = random.Random(f"{loaded.design.seed} {cell}")  # noqa: S311  # of an experiment
    while True:
        length = cell.input_tokens or 1
        if prompts.lengths is not None:
            length = drawn_length(prompts.lengths, generator)
        yield _replaced(form, {TEXT: text_of(length, tokenizer, generator)})


def drawn_length(lengths: Lengths, generator: random.Random) -> int:
    """Returns the tokens of one text; a length beyond the bounds is drawn again."""
    if not lengths.mean or not lengths.deviation:
        return generator.randint(lengths.least, lengths.most)
    # Of the normal distribution that is behind it.
    variance = math.log(1 + (lengths.deviation / lengths.mean) ** 2)
    mean = math.log(lengths.mean) - variance / 2
    for _ in range(_TRIES):
        found = round(generator.lognormvariate(mean, math.sqrt(variance)))
        if lengths.least <= found <= lengths.most:
            return found
    # Hardly any length is within the bounds.
    return min(max(round(lengths.mean), lengths.least), lengths.most)


def read_prompts(path: Path, root: Path) -> list[Any]:
    """Returns the lines of a file of prompts; of a `.jsonl` file their JSON values."""
    shown = relative(path, root)
    remedy = "Give one prompt in each line, in UTF-8. In a `.jsonl` file each line is JSON."
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError.of(Code.BENCH_INPUT, f"{shown} cannot be read: {reason}", remedy) from None
    found: list[Any] = []
    problems = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(parse_json(line) if path.suffix == ".jsonl" else line)
        except ValueError as error:
            message = f"not JSON: {error}"
            place = Location(shown, number, 1)
            problems.append(Problem(Code.BENCH_INPUT, Kind.SHAPE, message, remedy, location=place))
    if problems:
        raise UserError(problems)
    if not found:
        raise UserError.of(Code.BENCH_INPUT, f"{shown} has no prompt", remedy)
    return found


def _replaced(content: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(content, str):
        return values.get(content, content)
    if isinstance(content, Mapping):
        return {key: _replaced(value, values) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_replaced(value, values) for value in content]
    return content
