"""Computes times, throughputs and ratios from trials, and makes a page of them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from benchmarks.estimates import cells_as_json, pooled_latencies, spread
from benchmarks.lmi.design import (
    BASELINE,
    COMPARISONS,
    MAX_NEW_TOKENS,
    PROMPTS,
    TRANSFERS,
    Comparison,
    Content,
    Design,
    System,
    Transfer,
    Way,
)
from benchmarks.lmi.servers import MAX_BATCH_DELAY_MILLISECONDS
from benchmarks.lmi.serving import Life, ServingSession
from benchmarks.lmi.weights import WeightsSession
from benchmarks.report import (
    CLOSED_LOOP,
    Document,
    counted,
    covered,
    items,
    milliseconds,
    picture,
    result_page,
    rounded,
    table,
)
from benchmarks.trials import Trial, results_of

_GIGABYTE = 1e9
_DIGITS = 4


# Any: JSON, as below.
def result(
    design: Design, serving: ServingSession | None, weights: WeightsSession | None
) -> dict[str, Any]:
    return {
        "design": asdict(design),
        "serving": _serving_result(design, serving) if serving else None,
        "weights": _weights_result(weights) if weights else None,
    }


def _serving_result(design: Design, session: ServingSession) -> dict[str, Any]:
    lives = {system: results_of(session.trials, system) for system in System}
    return {
        "agreement": {"answers": session.answers, "same": session.same},
        "comparisons": [
            _comparison(each, lives[each.system], lives[each.other], design.concurrencies)
            for each in COMPARISONS
        ],
        "systems": [
            {
                "system": system,
                "ready_seconds": rounded(spread(each.start.ready_seconds for each in own), _DIGITS),
                "answered_seconds": rounded(
                    spread(each.start.answered_seconds for each in own), _DIGITS
                ),
                "loads": [_load(own, clients) for clients in design.concurrencies],
            }
            for system, own in lives.items()
        ],
        "trials": [_life(order, trial) for order, trial in enumerate(session.trials, start=1)],
    }


def _comparison(
    comparison: Comparison, ours: Sequence[Life], theirs: Sequence[Life], clients: Sequence[int]
) -> dict[str, Any]:
    return {
        "comparison": comparison.title,
        "system": comparison.system,
        "other": comparison.other,
        "other_ready_in_times_of_system": _ratio(
            [life.start.ready_seconds for life in theirs],
            [life.start.ready_seconds for life in ours],
        ),
        "system_requests_per_second_in_times_of_other": [
            {
                "clients": each,
                **_ratio(
                    [life.loads[each].answers_per_second for life in ours],
                    [life.loads[each].answers_per_second for life in theirs],
                ),
            }
            for each in clients
        ],
    }


def _load(lives: Sequence[Life], clients: int) -> dict[str, Any]:
    loads = [life.loads[clients] for life in lives]
    latencies = pooled_latencies(loads)
    # All answers divided by their time, since DJL Serving does not serve all clients alike.
    rates = spread(load.answers_per_second for load in loads)
    return {
        "clients": clients,
        "requests_per_second": rounded(rates, _DIGITS),
        "p50_milliseconds": milliseconds(latencies.p50),
        "p95_milliseconds": milliseconds(latencies.p95),
        "longest_milliseconds": milliseconds(latencies.longest),
        "requests": latencies.count,
    }


def _life(order: int, trial: Trial[System, Life]) -> dict[str, Any]:
    life = trial.result
    return {
        "system": trial.cell,
        "round": trial.round,
        "order": order,
        **rounded(life.start, _DIGITS),
        "warm_up_requests_per_second": [round(rate, 3) for rate in life.warm_ups],
        "requests_per_second": [
            {
                "clients": clients,
                "requests_per_second": round(load.answers_per_second, 3),
                "requests": len(load.all_latencies_seconds),
            }
            for clients, load in sorted(life.loads.items())
        ],
    }


def _weights_result(session: WeightsSession) -> dict[str, Any]:
    seconds = {
        transfer: [cost.seconds for cost in results_of(session.trials, transfer)]
        for transfer in TRANSFERS
    }
    return {
        "weights_bytes": session.weights_bytes,
        "archive_bytes": session.archive_bytes,
        "store_bytes_per_second": [
            {"connections": connections, "bytes_per_second": round(rate)}
            for connections, rate in session.store_bytes_per_second.items()
        ],
        "disk_bytes_per_second": round(session.disk_bytes_per_second),
        "transfers": cells_as_json(
            TRANSFERS,
            session.trials,
            lambda transfer: {
                "way": transfer.way,
                "content": transfer.content,
                "times_of_baseline": _ratio(seconds[transfer], seconds[BASELINE]),
            },
        ),
    }


def _ratio(values: Sequence[float], others: Sequence[float]) -> dict[str, float]:
    """Returns the ratio of the medians, and the range of the ratios of the rounds."""
    by_round = [value / other for value, other in zip(values, others, strict=True)]
    found = {
        "value": median(values) / median(others),
        "low": min(by_round),
        "high": max(by_round),
    }
    return {name: round(value, _DIGITS) for name, value in found.items()}


def page(document: Document) -> str:
    sections: list[str] = []
    if document["serving"]:
        sections += _serving(document)
    if document["weights"]:
        sections += _weights(document)
    return result_page(
        document,
        "LMI: DJL Serving beside Slipway's core, and a prefix beside a tar.gz",
        sections,
        f"Order and weights: seed {document['design']['seed']}.",
        CLOSED_LOOP,
    )


def _serving(document: Document) -> Iterator[str]:
    design, serving = document["design"], document["serving"]
    several = max(design["concurrencies"])
    comparisons = [
        "compared",
        "DJL's time to ready, of Slipway's",
        *(
            f"Slipway's requests/s, of DJL's: {counted(each, 'client')}"
            for each in design["concurrencies"]
        ),
    ]
    ratios = [
        [
            each["comparison"],
            _shown_ratio(each["other_ready_in_times_of_system"]),
            *map(_shown_ratio, each["system_requests_per_second_in_times_of_other"]),
        ]
        for each in serving["comparisons"]
    ]
    starts = [
        [
            System(each["system"]).label,
            f"{each['ready_seconds']['median']:.2f}",
            f"{each['answered_seconds']['median']:.2f}",
        ]
        for each in serving["systems"]
    ]
    loads = [
        [
            str(clients),
            System(each["system"]).label,
            f"{load['requests_per_second']['median']:.1f}",
            f"{load['p50_milliseconds']:.1f}",
            f"{load['p95_milliseconds']:.1f}",
            f"{load['longest_milliseconds']:,.0f}",
        ]
        for clients in design["concurrencies"]
        for each in serving["systems"]
        for load in each["loads"]
        if load["clients"] == clients
    ]
    yield "## The sample model through DJL Serving and through Slipway's core"
    yield table(comparisons, ratios)
    yield (
        "A number is the ratio of the medians. In brackets is the range of the ratios of "
        f"{counted(design['trials'], 'round')}, which covers the true median with "
        f"{covered(design['trials'])}."
    )
    yield from picture(
        document, "benchmark-lmi", "Requests per second and the time to ready, by server"
    )
    yield _EVERY_TRIAL
    yield table(["server", "ready s", "first answer s"], starts)
    yield table(["clients", "server", "requests/s", "p50 ms", "p95 ms", "longest ms"], loads)
    yield items(
        f"Requests: {len(PROMPTS)} prompts, up to {MAX_NEW_TOKENS} new tokens, greedy.",
        "Answers: before the measurement every server gave the same text for every prompt. During "
        f"it, {serving['agreement']['same']:,} of {serving['agreement']['answers']:,} answers were "
        "that text.",
        f"Servers: one worker, {design['cores']} threads, float32.",
        f"*Its batches*: `batch_size` {design['max_batch_size']}, decoded together to the end of "
        f"the longest text. DJL Serving waits up to {MAX_BATCH_DELAY_MILLISECONDS} ms for more "
        "requests (`max_batch_delay`), also with 1 client.",
        f"Warm-up: rounds of {design['warm_up_seconds']:g} s with {counted(several, 'client')}, at "
        f"most {design['most_warm_ups']}. The last one is less than 2 % faster than the best one "
        "before it. Java has compiled the frequent code then.",
        f"*Shared batches*: up to {design['max_batch_size']} texts, which join and leave between "
        "two tokens.",
        "*Requests/s*: all answers divided by the time from the first request to the last answer.",
        "*Longest ms*: the longest time of one request. A server may let some clients wait until "
        "others have ended, and is not faster for it.",
    )


def _weights(document: Document) -> Iterator[str]:
    design, weights = document["design"], document["weights"]
    size = weights["weights_bytes"]
    rows = []
    for each in weights["transfers"]:
        transfer = Transfer(Way(each["way"]), Content(each["content"]))
        seconds = each["readings"]["seconds"]["median"]
        rows.append(
            [
                transfer.way.label,
                transfer.content.label if transfer.way.is_archive else "any",
                f"{seconds:.2f}",
                f"{size / seconds / _GIGABYTE:.2f}",
                "" if transfer == BASELINE else _shown_ratio(each["times_of_baseline"]),
                f"{each['readings']['processor_seconds']['median']:.1f}",
            ]
        )
    store = ", ".join(
        f"{each['bytes_per_second'] / _GIGABYTE:.2f} GB/s over "
        f"{counted(each['connections'], 'connection')}"
        for each in weights["store_bytes_per_second"]
    )
    archives = " and ".join(
        f"{weights['archive_bytes'][content] / size:.1%} of the size for {content.label}"
        for content in Content
    )
    yield f"## {size / _GIGABYTE:.2g} GB of weights, from a local S3 to the disk"
    yield from picture(document, "benchmark-weights", "Seconds until the weights are on the disk")
    yield _EVERY_TRIAL
    yield table(["how", "content", "s", "GB/s", "of `s5cmd sync`'s time", "processor s"], rows)
    yield items(
        f"Weights: {design['shards']} files, {design['transfer_trials']} trials of each way.",
        f"Local S3: it reads from memory. It gave a client that throws everything away {store}.",
        f"Disk: it took {weights['disk_bytes_per_second'] / _GIGABYTE:.2f} GB/s, with the data on "
        "it at the end.",
        f"tar.gz (gzip's level 6): it has {archives}. Weights resemble the latter. gzip unpacks "
        "random bytes fastest, because it stores them as they are.",
        "The processor seconds are of the programs that fetch and extract. They do not include the "
        "store, which runs on the same cores.",
    )


_EVERY_TRIAL = "Tables have the medians. [lmi.json](lmi.json) has their ranges and every trial."


def _shown_ratio(ratio: Document) -> str:
    return f"{ratio['value']:.2f} x ({ratio['low']:.2f} to {ratio['high']:.2f})"
