"""The requests of a cell: a design's form, filled with texts of a file or of given lengths."""

import itertools
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.benchmarking.design import (
    INPUT,
    INPUTS,
    OUTPUT_TOKENS,
    TEXT,
    Cell,
    Design,
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
    loaded: LoadedDesign, config: ModelConfig | None, artifacts: str, root: Path
) -> "tuple[Tokenizer | None, str]":
    """Returns the model's tokenizer, and where it is or was looked for.

    Args:
        loaded: the design, which may name one.
        config: of the model; None if it cannot be read.
        artifacts: `release` or `sample`: which of the two the environment deploys.
        root: the project.

    Raises:
        UserError: the design names a file that is no tokenizer.
    """
    named = loaded.design.prompts.tokenizer
    path = None
    if named is not None:
        path = _beside(loaded, named, root)
    elif config is not None:
        source = config.artifacts.sample if artifacts == "sample" else config.artifacts.weights
        folder = getattr(source, "path", None)
        path = root / folder / "tokenizer.json" if folder else None
    if path is None:
        return None, "the model's files are not on this machine"
    shown = relative(path, root)
    if not path.is_file():
        if named is None:
            return None, f"there is no {shown}"
        raise no_tokenizer(f"there is no {shown}")
    # Imported when it is needed: it takes its time.
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path)), shown
    except Exception as error:  # the library raises nothing narrower
        raise no_tokenizer(f"{shown} is no tokenizer: {error}") from None


def no_tokenizer(reason: str) -> UserError:
    """Returns the report of a tokenizer that is missing."""
    return UserError.of(
        Code.BENCH_INPUT,
        f"lengths in tokens need the model's tokenizer: {reason}",
        "Name its tokenizer.json as `prompts.tokenizer`, or give texts as `prompts.file`.",
    )


class Texts:
    """Texts of a number of tokens, without the special tokens; random words of the tokenizer."""

    def __init__(self, tokenizer: "Tokenizer", generator: random.Random) -> None:
        self._tokenizer, self._generator = tokenizer, generator
        self._size = tokenizer.get_vocab_size()

    def of(self, count: int) -> str:
        """Returns a text with exactly so many tokens.

        Raises:
            UserError: the tokenizer gives none, such as one without words.
        """
        for _ in range(_TRIES):
            text = " ".join(itertools.islice(self._words(), count))
            # Cutting a text may change its last token, so it is looked at again.
            for _ in range(3):
                found = self._tokenizer.encode(text, add_special_tokens=False)
                if len(found.ids) == count:
                    return text
                if len(found.ids) < count:
                    break
                text = text[: found.offsets[count - 1][1]]
        raise no_tokenizer(f"it gives no text of {count} tokens")

    def _words(self) -> Iterator[str]:
        for _ in range(self._size * _TRIES):
            word = self._tokenizer.decode([self._generator.randrange(self._size)]).strip()
            if word.isalpha():
                yield word


def make_bodies(
    loaded: LoadedDesign, cell: Cell, tokenizer: "Tokenizer | None", missing: str, root: Path
) -> list[bytes]:
    """Returns the requests of a cell, the same for the same seed.

    Args:
        loaded: the design.
        cell: the levels.
        tokenizer: the model's; None if there is none.
        missing: why there is none.
        root: the project, to which paths in messages are relative.

    Raises:
        UserError: lengths are given and there is no tokenizer, or the prompts cannot be read.
    """
    design = loaded.design
    generator = random.Random(f"{design.seed} {cell}")  # noqa: S311  # of an experiment
    inputs = _inputs(loaded, cell, tokenizer, missing, root, generator)
    return [
        json.dumps(
            _filled(design.request.body, cell, list(itertools.islice(inputs, cell.batch)))
        ).encode()
        for _ in range(REQUESTS)
    ]


# Any: JSON.
def _inputs(
    loaded: LoadedDesign,
    cell: Cell,
    tokenizer: "Tokenizer | None",
    missing: str,
    root: Path,
    generator: random.Random,
) -> Iterator[Any]:
    design = loaded.design
    if design.prompts.file is not None:
        path = _beside(loaded, design.prompts.file, root)
        read = read_prompts(path, root)
        if path.suffix == ".jsonl":
            return itertools.cycle(read)
        return (_with_text(design.request.input, text) for text in itertools.cycle(read))
    if tokenizer is None:
        raise no_tokenizer(missing)
    texts = Texts(tokenizer, generator)
    length = _length_of(design, cell, generator)
    return (_with_text(design.request.input, texts.of(length())) for _ in itertools.count())


def _length_of(design: Design, cell: Cell, generator: random.Random) -> Callable[[], int]:
    lengths = design.prompts.lengths
    if lengths is None:
        return lambda: cell.input_tokens or 1
    return lambda: drawn_length(lengths, generator)


def drawn_length(lengths: Lengths, generator: random.Random) -> int:
    """Returns the tokens of one text; a length beyond the bounds is drawn again."""
    if lengths.distribution == "uniform" or not lengths.mean or not lengths.deviation:
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
    """Returns the lines of a file of prompts; of a `.jsonl` file their JSON values.

    Raises:
        UserError: every line that is wrong, or the file cannot be read.
    """
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


def _beside(loaded: LoadedDesign, name: str, root: Path) -> Path:
    """Returns a file that a design names: beside the design, or in the project."""
    beside = loaded.path.parent / name
    return beside if beside.exists() else root / name


def _with_text(content: Any, text: str) -> Any:
    return _replaced(content, {TEXT: text})


def _filled(body: Any, cell: Cell, inputs: list[Any]) -> Any:
    return _replaced(body, {INPUTS: inputs, INPUT: inputs[0], OUTPUT_TOKENS: cell.output_tokens})


def _replaced(content: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(content, str):
        return values.get(content, content)
    if isinstance(content, Mapping):
        return {key: _replaced(value, values) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_replaced(value, values) for value in content]
    return content
