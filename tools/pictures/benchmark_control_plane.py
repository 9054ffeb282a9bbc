"""What a command costs as a project grows."""

from typing import Any

from tools.pictures.kit.lines import Lines, Panel, Series, Value
from tools.pictures.kit.results import results

_CELLS: list[dict[str, Any]] = results("control-plane")["cells"]
_SIZES = [str(size) for size in results("control-plane")["design"]["sizes"]]
_VERBS = ("deploy", "diff", "synth")
_GREATEST = max(cell["highest_seconds"] for cell in _CELLS)


def _series(typed: str, label: str, *, is_selected: bool) -> Series:
    return Series(
        label,
        [
            Value(
                str(cell["config_count"]),
                cell["median_seconds"],
                cell["lowest_seconds"],
                cell["highest_seconds"],
            )
            for cell in _CELLS
            if cell["typed"] == typed
        ],
        tone="accent" if is_selected else "plain",
    )


PICTURES = [
    Lines(
        name="benchmark-commands",
        title="Seconds of the CDK's commands, by the number of model configs",
        description=(
            "Median seconds of cdk deploy, cdk diff and cdk synth, for one model with "
            "-c models=NAME and for every model."
        ),
        place_title="model configs in the project",
        columns=2,
        label_width=58,
        panels=[
            Panel(
                "One model: `-c models=NAME`",
                "seconds",
                _SIZES,
                [
                    _series(f"cdk {verb} NAME -c models=NAME", verb, is_selected=True)
                    for verb in _VERBS
                ],
                greatest=_GREATEST,
            ),
            Panel(
                "Every model",
                "seconds",
                _SIZES,
                [_series(f"cdk {verb} NAME", verb, is_selected=False) for verb in _VERBS],
                greatest=_GREATEST,
            ),
        ],
        note="Points are medians. Upright lines go from the shortest trial to the longest trial.",
    )
]
