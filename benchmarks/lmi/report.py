"""Writes the result as JSON with every trial, and as a page of Markdown."""

from dataclasses import asdict
from typing import Any

from benchmarks.driver import CLOSED_LOOP
from benchmarks.lmi.design import BASELINE, Content, Design
from benchmarks.lmi.djl import MAX_BATCH_DELAY_MILLISECONDS
from benchmarks.lmi.prompts import MAX_NEW_TOKENS, PROMPTS
from benchmarks.lmi.summary import (
    ComparisonSummary,
    Ratio,
    ServingSummary,
    Summary,
    WeightsSummary,
)
from benchmarks.report import (
    MILLISECONDS,
    Context,
    counted,
    items,
    milliseconds,
    page,
    picture,
    rounded,
    table,
)

_GIGABYTE = 1e9
_DIGITS = 4
_QUICK = "A quick run, with few requests and little data: it shows that everything works, no more."


def as_json(design: Design, summary: Summary, context: Context) -> dict[str, Any]:
    """Returns the whole result as one JSON document.

    Args:
        design: the plan of the run.
        summary: the computed results.
        context: time, place and commit of the run.
    """
    return {
        "benchmark": "lmi",
        **context.as_json(),
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
                "other_ready_in_times_of_system": rounded(found.ready, _DIGITS),
                "system_requests_per_second_in_times_of_other": [
                    {"clients": clients, **rounded(ratio, _DIGITS)}
                    for clients, ratio in found.throughputs.items()
                ],
            }
            for found in summary.comparisons
        ],
        "systems": [
            {
                "system": system,
                "ready_seconds": rounded(found.ready_seconds, _DIGITS),
                "answered_seconds": rounded(found.answered_seconds, _DIGITS),
                "loads": [
                    {
                        "clients": clients,
                        "requests_per_second": rounded(load.requests_per_second, _DIGITS),
                        "p50_milliseconds": milliseconds(load.latencies.p50),
                        "p95_milliseconds": milliseconds(load.latencies.p95),
                        "longest_milliseconds": milliseconds(load.latencies.longest),
                        "requests": load.latencies.count,
                    }
                    for clients, load in found.loads.items()
                ],
            }
            for system, found in summary.systems.items()
        ],
        "trials": [
            {
                "system": trial.cell,
                "round": trial.round,
                "order": order,
                **rounded(trial.result.start, _DIGITS),
                "warm_up_requests_per_second": [round(rate, 3) for rate in trial.result.warm_ups],
                "requests_per_second": [
                    {
                        "clients": clients,
                        "requests_per_second": round(load.answers_per_second, 3),
                        "requests": len(load.all_latencies_seconds),
                    }
                    for clients, load in sorted(trial.result.loads.items())
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
                "seconds": rounded(found.seconds, _DIGITS),
                "processor_seconds": round(found.processor_seconds, 3),
                "times_of_baseline": rounded(found.ratio, _DIGITS),
            }
            for transfer, found in summary.transfers.items()
        ],
        "trials": [
            {
                "way": trial.cell.way,
                "content": trial.cell.content,
                "round": trial.round,
                "order": order,
                **rounded(trial.result, _DIGITS),
            }
            for order, trial in enumerate(session.trials, start=1)
        ],
    }


def as_markdown(design: Design, summary: Summary, context: Context) -> str:
    """Returns the result as a page: ratios, times and rates, and their limits.

    Args:
        design: the plan of the run.
        summary: the computed results.
        context: time, place and commit of the run.
    """
    sections = ["# LMI: DJL Serving beside Slipway's core, and a prefix beside a tar.gz"]
    if design.is_quick:
        sections.append(_QUICK)
    if summary.serving:
        sections += _serving(design, summary.serving)
    if summary.weights:
        sections += _weights(design, summary.weights)
    sections += [
        "## Circumstances",
        context.as_list(
            f"Order and weights: seed {design.seed}.",
            CLOSED_LOOP,
            "[What is measured, and how to read it](../README.md).",
        ),
    ]
    return page(sections)


def _serving(design: Design, summary: ServingSummary) -> list[str]:
    agreement = summary.session.agreement
    several = max(design.concurrencies)
    comparisons = [
        "compared",
        "DJL's time to ready, of Slipway's",
        *(
            f"Slipway's requests/s, of DJL's: {counted(each, 'client')}"
            for each in design.concurrencies
        ),
    ]
    starts = [
        [
            system.label,
            f"{found.ready_seconds.median:.2f}",
            f"{found.answered_seconds.median:.2f}",
        ]
        for system, found in summary.systems.items()
    ]
    loads = [
        [
            str(clients),
            system.label,
            f"{load.requests_per_second.median:.1f}",
            f"{load.latencies.p50 * MILLISECONDS:.1f}",
            f"{load.latencies.p95 * MILLISECONDS:.1f}",
            f"{load.latencies.longest * MILLISECONDS:,.0f}",
        ]
        for clients in design.concurrencies
        for system, found in summary.systems.items()
        for load in [found.loads[clients]]
    ]
    return [
        "## The sample model through DJL Serving and through Slipway's core",
        table(comparisons, [_comparison(found) for found in summary.comparisons]),
        "A number is the ratio of the medians. In brackets is the range of the ratios of "
        f"{counted(design.trials, 'round')}, which covers the true median with "
        f"{1 - 0.5 ** (design.trials - 1):.0%}.",
        *_plot(design, "benchmark-lmi", "Requests per second and the time to ready, by server"),
        table(
            ["server", "ready s", "first answer s"],
            starts,
        ),
        table(
            [
                "clients",
                "server",
                "requests/s",
                "p50 ms",
                "p95 ms",
                "longest ms",
            ],
            loads,
        ),
        items(
            f"Requests: {len(PROMPTS)} prompts, up to {MAX_NEW_TOKENS} new tokens, greedy.",
            "Answers: before the measurement every server gave the same text for every prompt. "
            f"During it, {agreement.same:,} of {agreement.answers:,} answers were that text.",
            f"Servers: one worker, {design.cores} threads, float32.",
            f"*Its batches*: `batch_size` {design.max_batch_size}, decoded together to the end of "
            "the longest text. DJL Serving waits up to "
            f"{MAX_BATCH_DELAY_MILLISECONDS} ms for more requests (`max_batch_delay`), also with 1 "
            "client.",
            "Warm-up: rounds of "
            f"{design.warm_up_seconds:g} s with {counted(several, 'client')}, at most "
            f"{design.most_warm_ups}. The last one is less than 2 % faster than the best one "
            "before it. Java has compiled the frequent code then.",
            f"*Shared batches*: up to {design.max_batch_size} texts, which join and leave between "
            "two tokens.",
            "*Requests/s*: all answers divided by the time from the first request to the last "
            "answer.",
            "*Longest ms*: the longest time of one request. A server may let some clients wait "
            "until others have ended, and is not faster for it.",
        ),
        "**What it does not say**",
        items(
            "Nothing about a GPU, vLLM or another engine of AWS's images, for which LMI is made. "
            "DJL Serving hands requests to these engines as they come. Here it waits for a script.",
            "Nothing about a large model. Its computing takes nearly all of the time, and the "
            "servers differ by little.",
            "An answer of this model has few tokens. The server's own cost of a request therefore "
            "weighs more than anywhere else.",
            f"Nothing about more than {several} clients, or about the network.",
        ),
    ]


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
            f"{found.seconds.median:.2f}",
            f"{session.weights_bytes / found.seconds.median / _GIGABYTE:.2f}",
            "" if transfer == BASELINE else _ratio(found.ratio),
            f"{found.processor_seconds:.1f}",
        ]
        for transfer, found in summary.transfers.items()
    ]
    store = ", ".join(
        f"{rate / _GIGABYTE:.2f} GB/s over {counted(number, 'connection')}"
        for number, rate in session.store_bytes_per_second.items()
    )
    archives = " and ".join(
        f"{session.archive_bytes[content] / session.weights_bytes:.1%} of the size for "
        f"{content.label}"
        for content in Content
    )
    return [
        f"## {session.weights_bytes / _GIGABYTE:.2g} GB of weights, from a local S3 to the disk",
        *_plot(design, "benchmark-weights", "Seconds until the weights are on the disk"),
        table(
            [
                "how",
                "content",
                "s",
                "GB/s",
                "of `s5cmd sync`'s time",
                "processor s",
            ],
            rows,
        ),
        items(
            f"Weights: {design.shards} files, {design.transfer_trials} trials of each way.",
            "Local S3: it reads from memory. It gave a client that throws everything away "
            f"{store}.",
            f"Disk: it took {session.disk_bytes_per_second / _GIGABYTE:.2f} GB/s, with the data on "
            "it at the end.",
            f"tar.gz (gzip's level 6): it has {archives}. Weights resemble the latter. gzip "
            "unpacks random bytes fastest, because it stores them as they are.",
            "The time ends when the files are complete in the page cache. Nothing waits for the "
            "disk, because the container reads the files next.",
            "Before each trial the files of the last trial are removed, and the disk has written "
            "everything.",
            "The tar.gz is fetched with one GET and extracted by `tar -xzf`, with gzip on one "
            "core. This is an assumption: SageMaker does not say how it does it.",
        ),
        "**What it does not say**",
        items(
            "Nothing about the network. S3 gives one connection far less than this store does. "
            "This slows down one GET, but not the many of s5cmd.",
            "Nothing about the time to compress and send a tar.gz beforehand.",
            "The processor seconds are of the programs that fetch and extract. They do not "
            "include the store, which runs on the same cores.",
        ),
    ]


def _plot(design: Design, name: str, text: str) -> list[str]:
    """Returns a plot, which is drawn from the committed results alone, and where the rest is."""
    if design.is_quick:
        return []
    return [
        picture(name, text),
        "Tables have the medians. [lmi.json](lmi.json) has their ranges and every trial.",
    ]


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.value:.2f} x ({ratio.low:.2f} to {ratio.high:.2f})"
