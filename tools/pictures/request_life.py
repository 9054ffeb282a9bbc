"""A request's life in the TensorRT container: each step, its bound, and what measures it."""

from collections.abc import Iterator
from itertools import pairwise

from tools.pictures.kit import Arrow, Box, Diagram

# Step; what bounds it, with the field's default; the answer beyond the bound; the metric.
_STEPS = [
    (
        "Invoke",
        "60 seconds, SageMaker's own limit",
        "`ModelError`",
        "`ModelLatency` and\n`OverheadLatency`",
    ),
    (
        "Receive",
        "6,291,456 bytes, and\n`request_timeout_seconds`",
        "413 or 408",
        "`slipway_buffered_bytes`",
    ),
    ("Check", "`max_input_tokens` and\n`max_new_tokens`", "400", "`slipway_requests_total`"),
    ("Queue", "`max_queue_length`: 256 texts", "503 and\n`Retry-After`", "`slipway_queue_seconds`"),
    (
        "Batch",
        "`max_batch_size`: 8 rows,\n`max_batch_delay_milliseconds`: 5",
        "waits in\nthe queue",
        "`slipway_batch_rows`",
    ),
    ("Compute", "`max_new_tokens` of the request", "text ends", "`slipway_compute_seconds`"),
    ("Answer", "`request_timeout_seconds`: 55", "504", "`slipway_request_seconds`"),
]


def _boxes() -> Iterator[Box]:
    for column, title in enumerate(("Step", "Bound", "Beyond it", "Metric")):
        yield Box(title, (column, 0), title, kind="bare")
    for row, (step, bound, beyond, metric) in enumerate(_STEPS, start=1):
        yield Box(step, (0, row), step, kind="accent" if step == "Batch" else "plain", number=row)
        for column, text in enumerate((bound, beyond, metric), start=1):
            yield Box(f"{step} {column}", (column, row), "", text, kind="bare")


PICTURES = [
    Diagram(
        name="request-life",
        title="The life of a request in the TensorRT container",
        description=" ".join(
            f"{step}: bound by {bound}; beyond it {beyond}; measured by {metric}."
            for step, bound, beyond, metric in _STEPS
        )
        .replace("`", "")
        .replace("\n", " "),
        columns=(132, 226, 92, 186),
        column_gap=22,
        row_gap=(12, *[22] * (len(_STEPS) - 1)),
        boxes=list(_boxes()),
        arrows=[Arrow(one[0], other[0]) for one, other in pairwise(_STEPS)],
        note=(
            "Fields are of the section `serving`, with their defaults. SageMaker publishes the "
            "first two metrics. The container has the others, on the port `SLIPWAY_METRICS_PORT`."
        ),
    )
]
