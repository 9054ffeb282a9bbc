"""The guide's table of LMI's partition frameworks, made of the facts.

`python -m slipway.facts.lmi_frameworks_table` prints it; docs/guides/lmi.md holds it as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from slipway.facts.lmi_frameworks import (
    PartitionFramework,
    framework_versions,
    partition_framework,
    partition_frameworks,
)

_COLUMNS = (
    "framework",
    "LMI",
    "image",
    "over several accelerators",
    "ahead of time",
    "streams",
    "continuous batching",
    "server's batches",
    "runs on",
    "status",
)


def table() -> str:
    """Returns the table of the guide: a framework and a span of alike versions in each row."""
    lines = [_line(_COLUMNS), _line(["---"] * len(_COLUMNS))]
    for name in partition_frameworks():
        spans: list[tuple[list[str], tuple[str, ...]]] = []
        for version in framework_versions(name):
            cells = _shown(partition_framework(name, version))
            if spans and spans[-1][1] == cells:
                spans[-1][0].append(version)
            else:
                spans.append(([version], cells))
        for versions, cells in spans:
            ends = dict.fromkeys((versions[0], versions[-1]))
            lines.append(_line((cells[0], " to ".join(ends), *cells[1:])))
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(framework: PartitionFramework) -> tuple[str, ...]:
    """Returns the cells of a row, without the versions."""
    ahead = framework.ahead_of_time
    streams = [
        f"`{cell.value}`" + (f" ({cell.note})" if cell.note else "")
        for cell in (framework.streaming, framework.rolling_streaming)
        if cell.value != "no"
    ]
    rolling = [f"`{batch}`" for batch in framework.rolling_batches]
    if framework.rolls_always:
        rolling = [*rolling, "or without an option"] if rolling else ["always"]
    batches = framework.server_batches
    places = [
        place + (f" ({cell.note})" if cell.note else "")
        for place, cell in (
            ("NVIDIA GPU", framework.gpu),
            ("Inferentia 2, Trainium", framework.neuron),
            ("CPU", framework.cpu),
        )
        if cell.value == "yes"
    ]
    return (
        framework.title,
        ", ".join(framework.images),
        _spread(framework),
        "no" if ahead is None else f"`{ahead.command[-1].rpartition('/')[2]}`",
        ", ".join(streams) or "no",
        " ".join(rolling) or "no",
        batches.value + (f" ({batches.note})" if batches.note else ""),
        ", ".join(places),
        framework.legacy or "living",
    )


def _spread(framework: PartitionFramework) -> str:
    """Returns how a model is laid on several accelerators, as the guide says it."""
    layers = framework.layers_over_devices.value
    if layers != "no":
        option = "tensor_parallel_degree" if layers == "degree" else "device_map"
        return f"whole layers (`{option}`)"
    parts = ["tensor parallel"] if framework.tensor_parallel.value == "yes" else []
    if framework.pipeline_parallel.value == "yes":
        parts.append("pipeline parallel")
    elif framework.pipeline_parallel.value == "unknown":
        parts.append("pipeline parallel unknown")
    return ", ".join(parts) or "no"


if __name__ == "__main__":
    print(table(), end="")
