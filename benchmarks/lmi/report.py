"""The result as JSON with every trial, and as a page of Markdown."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.lmi.design import BASELINE, Content, Design
from benchmarks.lmi.prompts import MAX_NEW_TOKENS, PROMPTS
from benchmarks.lmi.summary import (
    ComparisonSummary,
    Ratio,
    ServingSummary,
    Spread,
    Summary,
    WeightsSummary,
)
from benchmarks.report import Context, table

_MILLISECONDS = 1000
_GIGABYTE = 1e9
_QUICK = "A quick run, with few requests and little data: it shows that everything works, no more."


@dataclass(frozen=True)
class Setting:
    """How it was measured.

    Args:
        command: that made the result.
    """

    command: str


def as_json(design: Design, summary: Summary, setting: Setting, context: Context) -> dict[str, Any]:
    """Returns the whole result as one JSON document."""
    return {
        "benchmark": "lmi",
        **context.as_json(),
        "command": setting.command,
        "design": asdict(design),
        "serving": _serving_json(summary.serving) if summary.serving else None,
        "weights": _weights_json(summary.weights) if summary.weights else None,
    }


def _serving_json(summary: ServingSummary) -> dict[str, Any]:
    return {
        "agreement": asdict(summary.session.agreement),
        "comparisons": [
            {
                "comparison": found.comparison.title,
                "system": found.comparison.system,
                "other": found.comparison.other,
                "other_ready_in_times_of_system": _rounded(asdict(found.ready)),
                "system_requests_per_second_in_times_of_other": [
                    {"clients": clients, **_rounded(asdict(ratio))}
                    for clients, ratio in found.throughputs.items()
                ],
            }
            for found in summary.comparisons
        ],
        "systems": [
            {
                "system": system,
                "ready_seconds": _rounded(asdict(found.ready_seconds)),
                "answered_seconds": _rounded(asdict(found.answered_seconds)),
                "loads": [
                    {
                        "clients": clients,
                        "requests_per_second": _rounded(asdict(load.requests_per_second)),
                        "p50_milliseconds": round(load.p50_seconds * _MILLISECONDS, 3),
                        "p95_milliseconds": round(load.p95_seconds * _MILLISECONDS, 3),
                        "longest_milliseconds": round(load.longest_seconds * _MILLISECONDS, 3),
                        "requests": load.requests,
                    }
                    for clients, load in found.loads.items()
                ],
            }
            for system, found in summary.systems.items()
        ],
        "trials": [
            {
                "system": trial.system,
                "round": trial.round,
                "order": order,
                **_rounded(asdict(trial.start)),
                "requests_per_second": [
                    {
                        "clients": clients,
                        "requests_per_second": round(load.answers_per_second, 3),
                        "requests": len(load.all_latencies_seconds),
                    }
                    for clients, load in sorted(trial.loads.items())
                ],
            }
            for order, trial in enumerate(summary.session.trials, start=1)
        ],
    }


def _weights_json(summary: WeightsSummary) -> dict[str, Any]:
    session = summary.session
    return {
        "weights_bytes": session.weights_bytes,
        "archive_bytes": dict(session.archive_bytes),
        "store_bytes_per_second": [
            {"connections": connections, "bytes_per_second": round(rate)}
            for connections, rate in session.store_bytes_per_second.items()
        ],
        "disk_bytes_per_second": round(session.disk_bytes_per_second),
        "transfers": [
            {
                "way": transfer.way,
                "content": transfer.content,
                "seconds": _rounded(asdict(found.seconds)),
                "processor_seconds": round(found.processor_seconds, 3),
                "times_of_baseline": _rounded(asdict(found.ratio)),
            }
            for transfer, found in summary.transfers.items()
        ],
        "trials": [
            {
                "way": trial.transfer.way,
                "content": trial.transfer.content,
                "round": trial.round,
                "order": order,
                **_rounded(asdict(trial.cost)),
            }
            for order, trial in enumerate(session.trials, start=1)
        ],
    }


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


def as_markdown(design: Design, summary: Summary, setting: Setting, context: Context) -> str:
    """Returns the result as a page: ratios, times and rates, and what they are not."""
    sections = ["# LMI: DJL Serving beside Slipway's core, and a prefix beside a tar.gz"]
    if design.is_quick:
        sections.append(_QUICK)
    if summary.serving:
        sections += _serving(design, summary.serving)
    if summary.weights:
        sections += _weights(design, summary.weights)
    sections += ["## Circumstances", _circumstances(design, setting, context)]
    return "\n\n".join(sections) + "\n"


def _serving(design: Design, summary: ServingSummary) -> list[str]:
    agreement = summary.session.agreement
    several = max(design.concurrencies)
    comparisons = [
        "compared",
        "DJL's time to ready, of Slipway's",
        *(f"Slipway's requests/s, of DJL's: {_clients(each)}" for each in design.concurrencies),
    ]
    starts = [
        [
            system.label,
            *_spread(found.ready_seconds),
            f"{found.answered_seconds.median:.2f}",
            str(design.trials),
        ]
        for system, found in summary.systems.items()
    ]
    loads = [
        [
            str(clients),
            system.label,
            *_spread(load.requests_per_second, digits=1),
            f"{load.p50_seconds * _MILLISECONDS:.1f}",
            f"{load.p95_seconds * _MILLISECONDS:.1f}",
            f"{load.longest_seconds * _MILLISECONDS:,.0f}",
            str(load.requests),
        ]
        for clients in design.concurrencies
        for system, found in summary.systems.items()
        for load in [found.loads[clients]]
    ]
    return [
        "## The sample model through DJL Serving and through Slipway's core",
        table(comparisons, [_comparison(found) for found in summary.comparisons]),
        "Each is the ratio of the medians, and in brackets the range of the rounds.",
        table(
            ["server", "ready s", "shortest", "longest", "first answer s", "starts"],
            starts,
        ),
        table(
            [
                "clients", "server", "requests/s", "lowest", "highest", "p50 ms", "p95 ms",
                "longest ms", "requests",
            ],
            loads,
        ),
        f"{len(PROMPTS)} prompts, up to {MAX_NEW_TOKENS} new tokens, greedy. Before it was timed "
        "every server gave the same text for every prompt; while it was timed, "
        f"{agreement.same:,} of {agreement.answers:,} answers were that text. Every server: one "
        f"worker, {design.cores} threads, float32. *Its batches*: `batch_size` "
        f"{design.max_batch_size}, decoded together to the end of the longest. *Shared batches*: "
        f"up to {design.max_batch_size} texts that come and go between two tokens.",
        "*Requests/s* is all answers by the time from the first request to the last answer, and "
        "*longest ms* the longest that one request took: a server may let some clients wait until "
        "others have ended, and is not faster for it.",
        f"**What it does not say.** Nothing of a GPU, of vLLM or another engine of AWS's images, "
        "which are what LMI is for: DJL Serving hands requests to them as they come, and here it "
        "waits for a script. Nothing of a large model: with one, computing takes nearly all of "
        "the time, and the servers differ by little. An answer of this model has few tokens, so "
        "that what a server adds to each request weighs more than anywhere else. Nothing of more "
        f"than {several} clients or of the network.",
    ]  # fmt: skip


def _comparison(found: ComparisonSummary) -> list[str]:
    return [
        found.comparison.title,
        _ratio(found.ready),
        *(_ratio(ratio) for ratio in found.throughputs.values()),
    ]


def _weights(design: Design, summary: WeightsSummary) -> list[str]:
    session = summary.session
    rows = [
        [
            transfer.way.label,
            transfer.content.label if transfer.way.is_archive else "any",
            *_spread(found.seconds),
            f"{session.weights_bytes / found.seconds.median / _GIGABYTE:.2f}",
            "" if transfer == BASELINE else _ratio(found.ratio),
            f"{found.processor_seconds:.1f}",
        ]
        for transfer, found in summary.transfers.items()
    ]
    store = ", ".join(
        f"{rate / _GIGABYTE:.2f} GB/s over {_connections(number)}"
        for number, rate in session.store_bytes_per_second.items()
    )
    archives = " and ".join(
        f"{session.archive_bytes[content] / session.weights_bytes:.1%} of the size for "
        f"{content.label}"
        for content in Content
    )
    return [
        f"## {session.weights_bytes / _GIGABYTE:.2g} GB of weights, from a local S3 to the disk",
        table(
            [
                "how", "content", "s", "shortest", "longest", "GB/s", "of `s5cmd sync`'s time",
                "processor s",
            ],
            rows,
        ),
        f"{design.shards} files of weights, {design.transfer_trials} trials each. The local S3 "
        f"gave a client that throws everything away {store}; it reads from memory. The disk took "
        f"{session.disk_bytes_per_second / _GIGABYTE:.2f} GB/s with the data on it at the end. The "
        f"tar.gz (gzip's level 6) has {archives}. Weights resemble the latter; random bytes are "
        "what gzip unpacks fastest, since it stores them as they are.",
        "**What is timed** ends when the files are complete in the page cache: nothing waits for "
        "the disk, since the container reads them next. Before each trial the last one's files "
        "are removed and the disk has been waited for. The tar.gz is fetched with one GET and "
        "extracted by `tar -xzf`, with gzip on one core. That is assumed of SageMaker, which does "
        "not say how it does it.",
        "**What it does not say.** Nothing of the network: S3 gives one connection far less than "
        "this store does, which slows down one GET, and not the many of s5cmd. Nothing of the "
        "time that compressing and sending a tar.gz takes before. The processor seconds are of the "
        "programs that fetch and extract; the store's own, on the same cores, are not in them.",
    ]  # fmt: skip


def _spread(found: Spread, digits: int = 2) -> list[str]:
    return [f"{value:,.{digits}f}" for value in (found.median, found.low, found.high)]


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.value:.2f} x ({ratio.low:.2f} to {ratio.high:.2f})"


def _clients(number: int) -> str:
    return f"{number} client{'' if number == 1 else 's'}"


def _connections(number: int) -> str:
    return f"{number} connection{'' if number == 1 else 's'}"


def _circumstances(design: Design, setting: Setting, context: Context) -> str:
    return (
        f"`{setting.command}`. {context.sentences()} Order and weights: seed {design.seed}. "
        "[What is measured, and how to read it](../README.md)."
    )
