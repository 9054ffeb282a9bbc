"""What `slipway fit` knows and how well, as facts, as results and as a page."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.sizing.fit import PRIORS, predicted_seconds
from benchmarks.sizing.rows import Row
from benchmarks.sizing.validation import (
    SEED,
    Prediction,
    bands,
    cheaper_of_two,
    corrected,
    corrected_bands,
    is_inside,
    measured,
    pairs_of,
    predict_each,
    predict_held_out,
    split,
    summary,
)
from slipway.sizing.facts import EXTRAPOLATED, NEARBY, is_measured_nearby, width_of
from slipway.sizing.latency import Constants

_ROOT = Path(__file__).parents[2]
FACTS = _ROOT / "slipway" / "facts" / "sizing.json"
RESULTS = _ROOT / "benchmarks" / "sizing" / "held_out.json"
PAGE = _ROOT / "docs" / "sizing.md"
AS_OF = "2026-11-28"
_GROUPS = {"dense": True, "other": False}
_DECIMALS = 3


def report(rows: Sequence[Row], fitted: Constants) -> dict[str, Any]:
    """Returns every held-out row with its prediction, and the summaries."""
    training, _ = split(rows)
    held = predict_held_out(rows)
    each_pair = predict_each(rows, lambda row: row.pair)
    each_model = predict_each(rows, lambda row: row.model)
    widths = bands(each_pair, rows) | {"corrected": corrected_bands(each_model)}
    own_widths = bands(predict_each(training, lambda row: row.pair), training)
    known = measured(training)
    all_rows = [Prediction(row, predicted_seconds(row, fitted)) for row in rows]
    inside = [is_inside(each, own_widths, _is_near(known, each.row)) for each in held]
    every = {pair: measured([r for r in rows if r.pair != pair]) for pair in pairs_of(rows)}
    inside_all = [
        is_inside(each, widths, _is_near(every[each.row.pair], each.row)) for each in each_pair
    ]
    sets = {"held_out": held, "each_pair": each_pair, "fitted": all_rows}
    result: dict[str, Any] = {
        "seed": SEED,
        "summary": {
            name: {group: summary(_of(found, is_dense=flag)) for group, flag in _GROUPS.items()}
            for name, found in sets.items()
        },
        "bands": widths,
        "held_out_bands": own_widths,
        "held_out": [_cells(each, own_widths, known) for each in held],
    }
    result["summary"]["held_out"]["inside_percent"] = _percent(inside)
    result["summary"]["each_pair"]["inside_percent"] = _percent(inside_all)
    result["summary"] |= {"corrected": _corrected_summary(each_model)}
    for name, found in sets.items():
        result["summary"][name]["cheaper_of_two"] = list(cheaper_of_two(found))
    return result


def _corrected_summary(each_model: Sequence[Prediction]) -> dict[str, Any]:
    return {
        place: {
            "before": summary([before for before, _ in changes]),
            "after": summary([after for _, after in changes]),
        }
        for place, changes in corrected(each_model).items()
    }


def _is_near(known: Sequence[Mapping[str, Any]], row: Row) -> bool:
    return is_measured_nearby(known, row.network, row.server, row.load.concurrency)


def _percent(inside: Sequence[bool]) -> float:
    return round(100 * sum(inside) / len(inside), 1)


def _of(predictions: Sequence[Prediction], *, is_dense: bool) -> list[Prediction]:
    return [each for each in predictions if each.row.is_dense == is_dense]


def _cells(
    each: Prediction, widths: Mapping[str, Any], known: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    row = each.row
    basis = NEARBY if _is_near(known, row) else EXTRAPOLATED
    return {
        "model": row.model,
        "instance_type": row.instance_type,
        "row": row.label,
        "dense": row.is_dense,
        "measured_seconds": round(row.seconds, _DECIMALS),
        "predicted_seconds": round(each.seconds, _DECIMALS),
        "basis": basis,
        "width": width_of(widths, row.network, row.server, basis),
    }


def sizing_facts(rows: Sequence[Row], fitted: Constants, results: Mapping[str, Any]) -> None:
    content = {
        "as_of": AS_OF,
        "sources": [
            "fitted by `python -m benchmarks.sizing --write` to the rows in benchmarks/sizing, "
            "whose README names their sources and licences; its `PRIORS` say what each number is"
        ],
        "constants": dict(fitted),
        "bands": results["bands"],
        "measured": measured(rows),
    }
    text = json.dumps(content, indent=2)
    # A row of what was measured is a line.
    row = r'\{\s+("engine"[^{}]+?)\s+\}'
    text = re.sub(row, lambda found: f"{{{' '.join(found[1].split())}}}", text)
    FACTS.write_text(text + "\n", "utf-8")


def write_results(results: Mapping[str, Any]) -> None:
    """Writes the results and the tables of the page."""
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    facts = json.loads(FACTS.read_text("utf-8"))
    text = PAGE.read_text("utf-8")
    for name, table in (
        ("summary", summary_table(results)),
        ("corrected", corrected_table(results)),
        ("constants", _constants_table(facts["constants"])),
        ("held-out rows", _rows_table(results["held_out"])),
    ):
        begin = f"<!-- begin {name} -->"
        pattern = re.compile(re.escape(begin) + r"\n.*?<!-- end -->", re.DOTALL)
        text = pattern.sub(lambda _, b=begin, t=table: f"{b}\n\n{t}\n<!-- end -->", text)  # type: ignore[misc]
    PAGE.write_text(text, "utf-8")


def summary_table(results: Mapping[str, Any]) -> str:
    found = {name: results["summary"][name] for name in ("held_out", "each_pair", "fitted")}
    goals = {"dense": (15, 30), "other": (20, 40)}
    titles = {"dense": "dense models", "other": "experts, or quantised"}
    lines = ["| | goal | held out | each pair in turn | fitted |", "|---|---|---|---|---|"]
    for group, (middle, worst) in goals.items():
        for field, goal, word in (
            ("median_percent", middle, "median"),
            ("worst_percent", worst, "worst"),
        ):
            cells = [_cell(found[name][group][field], goal) for name in found]
            lines.append(f"| {titles[group]}, {word} error | {goal} % | {' | '.join(cells)} |")
    shares = [found[name].get("inside_percent") for name in found]
    cells = ["-" if share is None else _cell(share, 90, at_least=True) for share in shares]
    lines.append(f"| rows inside their band | 90 % | {' | '.join(cells)} |")
    orders = [found[name]["cheaper_of_two"] for name in found]
    shown = [f"{right} of {total}" for right, total in orders]
    lines.append(f"| cheaper of two types | 9 of 10 | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def corrected_table(results: Mapping[str, Any]) -> str:
    """Returns what measured rows change for others of their model."""
    titles = {
        "type": "the same type, other loads",
        "gpu": "another type with the same GPU",
        "other GPU": "a type with another GPU",
    }
    lines = [
        "| measured | rows | median error before | after | worst error before | after |",
        "|---|---|---|---|---|---|",
    ]
    for place, title in titles.items():
        both = [results["summary"]["corrected"][place][side] for side in ("before", "after")]
        cells = [f"{each[f'{word}_percent']:g} %" for word in ("median", "worst") for each in both]
        lines.append(f"| {title} | {both[0]['rows']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(value: float, goal: float, *, at_least: bool = False) -> str:
    is_met = value >= goal if at_least else value <= goal
    return f"{value:g} %" if is_met else f"{value:g} %, missed"


def _constants_table(constants: Constants) -> str:
    lines = ["| constant | value | meaning |", "|---|---|---|"]
    lines += [
        f"| {name} | {value:g} | {PRIORS[name].meaning} |" for name, value in constants.items()
    ]
    return "\n".join(lines) + "\n"


def _rows_table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| model, type | row | measured s | predicted s | error | basis |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda each: (each["model"], each["instance_type"])):
        error = row["predicted_seconds"] / row["measured_seconds"] - 1
        lines.append(
            f"| {row['model']}, {row['instance_type']} | {row['row']} "
            f"| {row['measured_seconds']:.2f} | {row['predicted_seconds']:.2f} "
            f"| {100 * error:+.0f} % | {row['basis']} |"
        )
    return "\n".join(lines) + "\n"


def summary_lines(predictions: Sequence[Prediction]) -> str:
    """Returns rows with their errors, and the summaries, as lines."""
    lines = [
        f"{each.row.model}  {each.row.instance_type}  {each.row.label}: measured "
        f"{each.row.seconds:.2f} s, predicted {each.seconds:.2f} s ({100 * each.error:+.0f} %)"
        for each in predictions
    ]
    for group, flag in _GROUPS.items():
        own = _of(predictions, is_dense=flag)
        if own:
            lines.append(f"{group}: {summary(own)}")
    return "\n".join(lines) + "\n"
