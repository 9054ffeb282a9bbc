"""`make demo` as a terminal session, from the recorded output of a run."""

from collections.abc import Iterable, Iterator

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
# What the diff says beside these resources concerns the functions around an update.
_RESOURCES = ("  [~] AWS::",)


def _sections() -> Iterator[tuple[str, list[str]]]:
    """Yields the heading of each section of the recording, and its lines."""
    for section in TRANSCRIPT.read_text("utf-8").split("== ")[1:]:
        heading, *lines = section.rstrip("\n").split("\n")
        yield heading, lines


def _kept(lines: Iterable[str]) -> list[str]:
    """Returns the lines that the picture has, without empty lines at both ends."""
    kept = [line for line in lines if not line.startswith(_LEFT_OUT)]
    return "\n".join(kept).strip("\n").split("\n")


def _diff(lines: list[str]) -> list[str]:
    """Returns the part of the summary from `the diff`, with the resources that it is about."""
    kept, is_wanted = [], True
    for line in lines[lines.index("the diff") :]:
        if line.startswith("  [~] "):
            is_wanted = line.startswith(_RESOURCES)
        elif not line.startswith("   "):
            is_wanted = True
        if is_wanted:
            kept.append(line)
    return kept


def _steps() -> Iterator[list[str]]:
    """Yields the steps: a heading with its first command, and each further command."""
    _, *sections, summary = _sections()
    for heading, lines in sections:
        step = [f"== {heading}"]
        for line in _kept(lines):
            if line.startswith("$ ") and any(each.startswith("$ ") for each in step):
                yield step
                step = []
            step.append(line)
        yield [*step, ""]
    heading, lines = summary
    yield [f"== {heading}", *_diff(lines)]


PICTURES = [
    Terminal(
        name="demo",
        title="make demo",
        description=(
            "make demo publishes and deploys a model on the embedded AWS. The endpoint answers, a "
            "change is shown by cdk diff and deployed, and the model is destroyed. Nothing is left."
        ),
        steps=list(_steps()),
    )
]
