"""Fenced blocks of Markdown pages, and what their labels mean.

The first word behind the fence is the language, and further words are labels for the tests:

- `sh`: command lines, which are parsed. `sh run`: a test of the page runs them too, in one shell.
  `sh aws`: they need an AWS account.
- `console`: command lines behind `$`, which are parsed, and what they printed once.
- `console run`: a test runs the commands, with the `yaml part of NAME` before it and the page's
  environments in place. Each line shown is in what they print, in order; `...` stands for more.
- `json output`, `text output`: the commands of the block before print it.
- `json lines`: each line is a document. `text` alone is not looked into.
- `python client`: a program that a test runs against the deployed model. A further label names
  the client's package, which has an environment of its own.
- `python file NAME`: a file of the project, which the commands of `console run` find.
- `python app`: an app.py, which a test synthesises. `python function`: the Lambda function that the
  page's app has in `functions/ask.py`.
- `yaml part of NAME`: sections that are valid in place of those of the shipped config NAME.
- `toml part of FILE`, `python part of FILE`: lines of a file in the repository.
- `yaml refused in NAME`: the same, and Slipway says by name that it does not support them yet.
- `yaml model`, `yaml environments`, `yaml design`: a whole file.
- `yaml workflow`, `yaml action`, `yaml gitlab`: a file of a CI system, whose commands are parsed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import slipway

ROOT = Path(slipway.__file__).parents[1]
_SECTION = re.compile(r"^## (?P<heading>.+)$", re.MULTILINE)
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    The place is `PAGE:LINE` of its first line. The language is the first word behind the fence, and
    the labels are the others. The section is the heading of the second level above it.
    """

    place: str
    language: str
    labels: tuple[str, ...]
    text: str
    section: str = ""


def pages() -> list[Path]:
    """Returns every page that a reader meets."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(found)


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    name = page.relative_to(ROOT).as_posix()
    for match in _FENCE.finditer(text):
        language, *labels = match["info"].split() or [""]
        line = text.count("\n", 0, match.start()) + 1
        section = ""
        for heading in _SECTION.finditer(text, 0, match.start()):
            section = heading["heading"]
        yield Block(f"{name}:{line}", language, tuple(labels), match["text"], section)


def lay_project(page: Path, root: Path) -> Path:
    """Makes a project without configs, with a page's environments and files; returns its configs.

    The project's own environments are there too, and what its configs refer to.
    """
    for name in ("samples", "slipway", "containers"):
        (root / name).symlink_to(ROOT / name)
    found = yaml.safe_load((ROOT / "environments.yaml").read_text("utf-8"))
    for block in blocks(page):
        if (block.language, *block.labels) == ("yaml", "environments"):
            for name, section in yaml.safe_load(block.text).items():
                # A page may tell of an environment bit by bit.
                found[name] = {**found.get(name, {}), **section}
        if block.labels[:1] == ("file",):
            (root / block.labels[1]).write_text(block.text, "utf-8")
    (root / "environments.yaml").write_text(yaml.safe_dump(found, sort_keys=False), "utf-8")
    (root / "model_configs").mkdir()
    return root / "model_configs"


def laid_over(block: Block) -> dict[str, Any]:
    """Returns the shipped config that a block is a part of, with the block's sections."""
    base = (ROOT / "model_configs" / f"{block.labels[2]}.yaml").read_text("utf-8")
    content: dict[str, Any] = yaml.safe_load(base)
    for section, value in yaml.safe_load(block.text).items():
        # Another framework has other fields, and so have other files.
        replaces = {"framework", "weights", "release"}
        merges = isinstance(value, dict) and not replaces & value.keys()
        content[section] = {**content.get(section, {}), **value} if merges else value
    return content
