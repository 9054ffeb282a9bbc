"""`make demo` as a terminal session, from the recorded output of a run in demo.txt.

The demo prints at its end what `cdk diff` and `slipway leftovers` said. The picture has it below
these commands. It leaves out the times, which are of one machine, and some lines. Its steps light
up one after another where a reader's system does not ask for less motion.
"""

from collections.abc import Iterator
from pathlib import Path

from tools.pictures.drawing import circle, document, line, text

RECORDING = Path(__file__).parent / "demo.txt"
# Beginnings of lines of the recording that the picture leaves out.
_LEFT_OUT = (
    "  done in",
    "  Artifact ",
    "  model_configs/",
    "  scaling ",
    "  policy ",
    "  alarm ",
)
# Each part of the summary, and the beginning of the command that said it.
_SAID_BY = {"the diff": "$ cdk --no-color diff ", "the account": "$ slipway leftovers "}
_COLUMNS = 100
_LINE = 17
_SECONDS_A_STEP = 0.7


def demo() -> str:
    """Returns the picture."""
    parts = [circle((23 + 18 * index, 18), 5, "edge") for index in range(3)]
    parts.append(text(380, 22, "make demo", "label soft middle"))
    parts.append(line((1, 34), (759, 34), "thin frame"))
    y = 62
    delays = ""
    for index, step in enumerate(_steps()):
        delays += f" .step-{index} {{ animation-delay: {index * _SECONDS_A_STEP:.1f}s }}"
        parts.append(f'<g class="step step-{index}">')
        for row, is_first in _rows(step):
            parts += [f"  {each}" for each in _row(row, y, is_first=is_first)]
            y += _LINE
        parts.append("</g>")
    motion = (
        "  <style>\n    text { white-space: pre }\n"
        "    @keyframes appear { from { opacity: 0.4 } to { opacity: 1 } }\n"
        "    @media (prefers-reduced-motion: no-preference) "
        f"{{ .step {{ animation: appear 0.4s both }}{delays} }}\n  </style>\n"
    )
    description = (
        "make demo publishes and deploys a model on the embedded AWS. The endpoint answers, cdk "
        "diff shows a change, which is deployed, and the model is destroyed. Nothing is left."
    )
    return document("make demo", description, (760, y + 4), parts, motion)


def _rows(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Yields the rows of the screen, and whether each begins its line."""
    for each in lines:
        for start in range(0, max(1, len(each)), _COLUMNS):
            yield each[start : start + _COLUMNS], start == 0


def _row(row: str, y: float, *, is_first: bool) -> list[str]:
    if is_first and row.startswith("$ "):
        return [text(18, y, "$", "code small bold accent"), text(32.45, y, row[2:], "code small")]
    if is_first and row.startswith("== "):
        return [text(18, y, row, "code small bold")]
    colour = "warn" if "[-]" in row else "accent" if "[+]" in row else "soft"
    return [text(18, y, row, f"code small {colour}")] if row else []


def _steps() -> Iterator[list[str]]:
    """Yields the lines that appear together: a command, what it says, and a heading before it."""
    recorded = "\n".join(map(str.rstrip, RECORDING.read_text("utf-8").strip().splitlines()))
    _, *sections, summary = recorded.split("== ")[1:]
    said = _summary(summary)
    for index, section in enumerate(sections):
        heading, *lines = section.rstrip("\n").split("\n")
        step = [*([""] if index else []), f"== {heading}"]
        for each in lines:
            if not each or each.startswith(_LEFT_OUT):
                continue
            if each.startswith("$ ") and any(shown.startswith("$ ") for shown in step):
                yield step
                step = []
            step.append(each)
            step += next((more for start, more in said.items() if each.startswith(start)), [])
        yield step


def _summary(summary: str) -> dict[str, list[str]]:
    """Returns the summary's parts by the beginning of the command that said them."""
    parts = dict[str, list[str]]()
    for part in summary.rstrip("\n").split("\n\n"):
        title, *lines = part.split("\n")
        if title.startswith("In short"):
            title, *lines = lines
        if title in _SAID_BY:
            parts[_SAID_BY[title]] = lines
    return parts
