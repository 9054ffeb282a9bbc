"""`make demo` as a terminal session, from the recorded output of a run.

The demo prints at its end what `cdk diff` and `slipway leftovers` said. The picture has it below
these commands. It leaves out the times, which are of one machine, and some lines.
"""

from collections.abc import Iterator

from tools.pictures.kit.terminal import Terminal
from tools.pictures.recording import TRANSCRIPT

# Beginnings of lines of the recording that the picture leaves out.
_LEFT_OUT = (
    "  done in",
    "  Artifact ",
    "  model_configs/",
    "  scaling ",
    "  policy ",
    "  alarm ",
)
# The diff's other resources are functions around an update, with the same values once more.
_RESOURCE = "  [~] AWS::"
# Each part of the summary, and the beginning of the command that said it.
_SAID_BY = {"the diff": "$ cdk --no-color diff ", "the account": "$ slipway leftovers "}


def _sections() -> list[tuple[str, list[str]]]:
    """Returns the heading of each section of the recording, and its lines."""
    sections = TRANSCRIPT.read_text("utf-8").split("== ")[1:]
    split = [section.rstrip("\n").split("\n") for section in sections]
    return [(heading, lines) for heading, *lines in split]


def _parts(summary: list[str]) -> dict[str, list[str]]:
    """Returns the summary's parts by the beginning of the command that said them."""
    parts: dict[str, list[str]] = {}
    for part in "\n".join(summary).split("\n\n"):
        title, *lines = part.split("\n")
        if title in _SAID_BY:
            parts[_SAID_BY[title]] = _wanted(lines)
    return parts


def _wanted(lines: list[str]) -> list[str]:
    """Returns the lines without the diff's resources that the picture leaves out."""
    wanted, is_wanted = [], True
    for line in lines:
        if line.startswith("  [~] "):
            is_wanted = line.startswith(_RESOURCE)
        if is_wanted:
            wanted.append(line)
    return wanted


def _steps() -> Iterator[list[str]]:
    """Yields the steps: a heading with its first command, and each further command."""
    _, *sections, (_, summary) = _sections()
    said = _parts(summary)
    for index, (heading, lines) in enumerate(sections):
        step = [*([""] if index else []), f"== {heading}"]
        for line in lines:
            if not line or line.startswith(_LEFT_OUT):
                continue
            if line.startswith("$ ") and any(each.startswith("$ ") for each in step):
                yield step
                step = []
            step.append(line)
            step += next((more for start, more in said.items() if line.startswith(start)), [])
        yield step


PICTURES = [
    Terminal(
        name="demo",
        title="make demo",
        description=(
            "make demo publishes and deploys a model on the embedded AWS. The endpoint answers, "
            "cdk diff shows a change, which is deployed, and the model is destroyed. Nothing is "
            "left."
        ),
        steps=list(_steps()),
    )
]
