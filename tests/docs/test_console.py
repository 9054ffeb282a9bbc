"""What the pages show of a command's output is what the command prints: `console run`."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command_line import Run
from tests.support.pages import ROOT, Block, blocks, laid_over, lay_project, pages


def shown() -> Iterator[Any]:
    """Yields the blocks that show an output, each with the part of a config before it."""
    for page in pages():
        part: Block | None = None
        for block in blocks(page):
            if block.language == "yaml" and block.labels[:2] == ("part", "of"):
                part = block
            if (block.language, *block.labels) == ("console", "run"):
                yield pytest.param(page, part, block, id=block.place)


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Yields each command of a block, and the lines that it shows."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        else:
            assert found, f"{block.place}: no command before the output"
            found[-1][1].append(line)
    yield from found


def normal(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def missing_line(lines: list[str], printed: str) -> str | None:
    """Returns the first line that does not follow the lines before it; None where all do."""
    rest = normal(printed)
    for line in lines:
        for piece in map(normal, line.split("...")):
            before, found, rest = rest.partition(piece) if piece else ("", " ", rest)
            if not found:
                return f"{line!r} is not in {before!r}"
    return None


def printed_by(command: str, slipway_command: Run) -> str:
    """Runs a command line, and returns what it prints."""
    program, *arguments = shlex.split(command)
    if program == "cat":
        return "".join(Path(name).read_text("utf-8") for name in arguments)
    assert program == "slipway", command
    _, output, error = slipway_command(*arguments)
    return output + error


@pytest.mark.parametrize(("page", "part", "block"), list(shown()))
def test_the_output_is_real(
    page: Path,
    part: Block | None,
    block: Block,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slipway_command: Run,
) -> None:
    configs = lay_project(page, tmp_path)
    for path in (ROOT / "model_configs").iterdir():
        (configs / path.name).symlink_to(path)
    if part is not None:
        config = configs / f"{part.labels[2]}.yaml"
        content = laid_over(part)
        # Where the page repeats the file, messages keep the file's lines.
        if content != yaml.safe_load(config.read_text("utf-8")):
            config.unlink()
            config.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLIPWAY_ENV", raising=False)
    for command, lines in commands(block):
        assert lines, f"{block.place}: {command} shows nothing"
        assert missing_line(lines, printed_by(command, slipway_command)) is None


def test_a_line_that_nothing_prints_is_found() -> None:
    assert missing_line(["a  b", "c ... e"], "a b\nc d\ne") is None
    assert missing_line(["c", "a b"], "a b\nc d\ne") is not None
    assert missing_line(["c ... f"], "a b\nc d\ne") is not None
