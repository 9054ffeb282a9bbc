"""The requests per second of a T5 on Triton on a CPU, beside other ways to serve it."""

from typing import Any

from benchmarks.triton.design import COPIES, System
from tools.pictures.kit import lines
from tools.pictures.kit.results import results
from tools.pictures.kit.style import Tone

_RESULTS = results("triton")
# Beside its line, a label has no code marks.
_LABELS: dict[str, tuple[str, Tone, bool]] = {
    System.TRITON: ("Slipway\non Triton", "accent", False),
    System.CORE: ("serving core", "plain", True),
    System.UNBATCHED: ("without batches", "accent", True),
    System.GENERATE: ("generate\nper request", "plain", False),
}


def _series(system: str, copies: int) -> lines.Series:
    label, tone, dashed = _LABELS[system]
    cells = [
        cell for cell in _RESULTS["cells"] if (cell["system"], cell["copies"]) == (system, copies)
    ]
    return lines.Series(label, list(map(_value, cells)), tone, dashed)


def _value(cell: dict[str, Any]) -> lines.Value:
    trials = [trial["requests_per_second"] for trial in cell["trials"]]
    low, high = (min(trials), max(trials)) if len(trials) > 1 else (None, None)
    return lines.Value(str(cell["clients"]), cell["requests_per_second"], low, high)


PICTURES = [
    lines.Lines(
        name="benchmark-triton",
        title="Requests per second of a small T5 on a CPU",
        description=(
            "Requests per second by the number of clients: Slipway's model on Triton with batches "
            "and without, the same graphs in Slipway's serving core, and generate of transformers "
            "for each request on Triton."
        ),
        place_title="clients",
        columns=2,
        label_width=130,
        panels=[
            lines.Panel(
                "1 copy of the model" if copies == 1 else f"{copies} copies of the model",
                "requests per second",
                [str(clients) for clients in _RESULTS["design"]["concurrencies"]],
                [_series(system, 1 if system == System.CORE else copies) for system in _LABELS],
            )
            for copies in COPIES
        ],
        note=(
            "A T5 of 1.0 million parameters. The serving core always has one copy. Upright lines "
            "go from the lowest trial to the highest."
        ),
    )
]
