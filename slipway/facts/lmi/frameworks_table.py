"""The guide's tables of LMI's partition frameworks, made of the facts.

`python -m slipway.facts.lmi.frameworks_table` prints them, and docs/guides/lmi.md has this text.
"""

from collections.abc import Iterable, Sequence

from slipway.facts.lmi.frameworks import (
    PartitionFramework,
    framework_versions,
    partition_framework,
    partition_frameworks,
)

_COLUMNS = (
    "image",
    "over several accelerators",
    "ahead of time",
    "streams",
    "continuous batching",
    "server's batches",
    "runs on",
    "status",
)


def sections() -> str:
    """Returns a section of the guide for each framework.

    Each section lists what holds for every version of the framework. If something differs, a table
    has a row for each span of versions that are alike.
    """
    return "\n".join(_section(name) for name in partition_frameworks())


def spans(name: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Returns the spans of versions of a framework that are alike, each with its cells."""
    found: list[tuple[list[str], tuple[str, ...]]] = []
    for version in framework_versions(name):
        cells = _cells(partition_framework(name, version))
        if found and found[-1][1] == cells:
            found[-1][0].append(version)
        else:
            found.append(([version], cells))
    return [(tuple(versions), cells) for versions, cells in found]


def _section(name: str) -> str:
    rows = spans(name)
    columns = list(zip(*(cells for _, cells in rows), strict=True))
    varying = [number for number, cells in enumerate(columns) if len(set(cells)) > 1]
    same = [
        f"- {column}: {cells[0]}"
        for number, (column, cells) in enumerate(zip(_COLUMNS, columns, strict=True))
        if number not in varying
    ]
    title = partition_framework(name, rows[0][0][0]).title
    lines = [f"### {title}", "", f"LMI {_span(framework_versions(name))}:", "", *same]
    if varying:
        header = ("LMI", *(_COLUMNS[number] for number in varying))
        lines += ["", _line(header), _line("---" for _ in header)]
        lines += [
            _line((_span(versions), *(cells[number] for number in varying)))
            for versions, cells in rows
        ]
    return "\n".join(lines) + "\n"


def _span(versions: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys((versions[0], versions[-1])))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(framework: PartitionFramework) -> tuple[str, ...]:
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
    print(sections(), end="")
