"""A run as Markdown and as one HTML page that needs no other file; made of its summary alone."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any, Final, NamedTuple

from slipway.benchmarking.design import FACTORS, LOADS, shown, shown_level, words
from slipway.benchmarking.figures import LEAST_TRIALS, TITLES
from slipway.benchmarking.plots import HEAT_STYLE, Point, heat_map, points_plot
from slipway.benchmarking.results import Document
from slipway.operations.page import html_page, marked

# Figures with their intervals; the summary has those of all.
_WITH_INTERVAL: Final = (
    "requests_per_second",
    "tokens_per_second",
    "p50_milliseconds",
    "p99_milliseconds",
)
_LEFT_OUT: Final = ("deviation_milliseconds", "late_p99_milliseconds")
_MOST_CURVES: Final = 4
# The one curve of more groups than lines could show.
_UNJOINED: Final = "cells"
_MOST_PANELS: Final = 6

_STYLE: Final = """\
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .4rem 0 }
th, td { padding: .2rem .9rem .2rem 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #d9dfe5 }
th { font-weight: 600; vertical-align: bottom }
th:first-child, td:first-child { text-align: left }
p, li { overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) { th, td { border-color: #2f3842 } }
"""


class Table(NamedTuple):
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]

    def as_markdown(self) -> str:
        """Returns it as Markdown; numbers are right-aligned."""
        rule = ["---", *("---:" for _ in self.heading[1:])]
        return "\n".join(
            f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |"
            for row in (self.heading, rule, *self.rows)
        )

    def as_html(self) -> str:
        head, *rows = (
            "".join(f"<{cell}>{escape(text)}</{cell}>" for text in row)
            for cell, row in (("th", self.heading), *(("td", row) for row in self.rows))
        )
        body = "\n".join(f"<tr>{row}</tr>" for row in rows)
        return (
            f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>"
        )


def _sections(document: Document) -> Iterator[tuple[str, Sequence[str], Table | None]]:
    """Yields what both forms of the report say: a heading, a list, and a table."""
    if _measured(document):
        yield "Results", (), results_table(document)
    else:
        yield "Results", ["No cell has a result."], None
    if document["published"]:
        yield "Published", [_source(document)], published_table(document)
    failures = [
        [shown(cell["levels"]), kind, f"{count:,}"]
        for cell in document["cells"]
        for kind, count in cell["failures"].items()
    ]
    if failures:
        yield "Failures", (), Table(["levels", "failure", "requests"], failures)
    yield "Circumstances", circumstances(document), None


def as_markdown(document: Document) -> str:
    parts = [f"# {_title(document)}"]
    parts += [f"**{text.replace('*', chr(92) + '*')}**" for text in troubles(document)]
    for heading, texts, table in _sections(document):
        parts.append(f"## {heading}")
        parts += ["\n".join(f"- {text}" for text in texts)] if texts else []
        parts += [table.as_markdown()] if table else []
    return "\n\n".join(parts) + "\n"


def as_html(document: Document) -> str:
    """Returns the report as a page without a script and without an address that is loaded."""
    parts = [f'<p class="trouble">{marked(text)}</p>' for text in troubles(document)]
    for heading, texts, table in _sections(document):
        parts.append(f"<h2>{heading}</h2>")
        parts += ["<ul>", *(f"<li>{marked(text)}</li>" for text in texts), "</ul>"] if texts else []
        parts += [table.as_html()] if table else []
        if heading == "Results":
            parts += ['<h2>Plots</h2>\n<div class="plots">', *plots(document), "</div>"]
    return html_page(_title(document), _STYLE + HEAT_STYLE, parts)


def _title(document: Document) -> str:
    return f"{document['model']} in {document['environment']}: {document['design']}"


def troubles(document: Document) -> list[str]:
    """Returns what a reader must know before any figure."""
    found = []
    if document["stopped"]:
        found.append(f"PARTIAL: {document['stopped']}. What was measured until then is here.")
    for cell in document["cells"]:
        levels = shown(cell["levels"])
        if cell["not_measured"]:
            found.append(f"NO RESULT: {levels}: {cell['not_measured']}.")
        elif cell["client_bound_trials"]:
            found.append(
                f"{cell['client_bound_trials']} trials of {levels} do not count: "
                "the client was the bottleneck."
            )
        if len(cell["instances"]) > 1:
            fleets = "; ".join(cell["instances"])
            found.append(f"The instances changed during {levels}: {fleets}.")
    return found


def results_table(document: Document) -> Table:
    cells = _measured(document)
    levels = [name for name in FACTORS if any(name in cell["levels"] for cell in cells)]
    batches = any(cell["levels"].get("batch", 1) > 1 for cell in cells)
    names = [
        name
        for name in TITLES
        if name not in _LEFT_OUT
        and ("items" not in name or batches)
        and any(name in cell["figures"] for cell in cells)
    ]
    rows = [
        [
            *(shown_level(cell["levels"].get(name)) for name in levels),
            *(_figure(cell["figures"].get(name), name) for name in names),
        ]
        for cell in cells
    ]
    return Table([*map(words, levels), *(TITLES[name] for name in names)], rows)


def published_table(document: Document) -> Table | None:
    """Returns the published rows, each with what was measured here at its levels."""
    published = document["published"]["rows"]
    if not published:
        return None
    keys = list(dict.fromkeys(key for row in published for key in row))
    labels = [key for key in keys if key not in TITLES]
    figures = [key for key in keys if key in TITLES]
    heading = list(map(words, labels))
    for key in figures:
        heading += [f"published {TITLES[key]}", f"here {TITLES[key]}"]
    rows = []
    for row in published:
        # A factor that the source does not tell may have any level.
        told = {name: row[name] for name in labels if name in FACTORS and name in row}
        cells = [c for c in _measured(document) if told == {**told, **_only(c["levels"], told)}]
        texts = [str(row.get(key, "")) for key in labels]
        for key in figures:
            texts += [str(row.get(key, "")), _here(cells, key) if key in row else ""]
        rows.append(texts)
    return Table(heading, rows)


def _only(levels: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in levels.items() if name in names}


def _here(cells: Sequence[Document], figure: str) -> str:
    values = [cell["figures"][figure]["value"] for cell in cells if figure in cell["figures"]]
    if not values:
        return "not measured"
    low, high = _number(min(values)), _number(max(values))
    return low if low == high else f"{low} to {high}"


def circumstances(document: Document) -> list[str]:
    client, count = document["client"], document["trials"]
    loop = (
        "Open loop: a latency counts from the request's time, also while it waits to be sent."
        if document["is_open"]
        else "Closed loop: each client sends its next request when it has its answer."
    )
    intervals = (
        "; in brackets its 95 % interval (bootstrap)"
        if count >= LEAST_TRIALS
        else ", which are too few for an interval"
    )
    fleets, costs = "; ".join(_fleets(document)), "; ".join(_costs(document))
    found = [
        f"Endpoint {document['endpoint']} in {document['region']}, design "
        f"`{document['design']}`: {document['description']}.",
        f"From {document['began_at']} to {document['ended_at']}; order and texts by seed "
        f"{document['seed']}.",
        loop,
        f"A figure is the median of {count} trials{intervals}.",
        f"Instances: {fleets or 'not seen'}. Cost: {costs or 'not known'}.",
        f"Client: Slipway {client['slipway']}, Python {client['python']}, {client['system']}, "
        f"{client['cores']} cores, load average {client['load_average']}.",
    ]
    if document["self_test"]:
        tests = "; ".join(
            f"{shown({name: each[name] for name in LOADS})} {each['reason'] or 'passed'}"
            for each in document["self_test"]
        )
        found.append(f"Self-test of the client against a server of 50 ms: {tests}.")
    if document["tokenizer"]:
        found.append(f"Tokens are counted with `{document['tokenizer']}`, without special tokens.")
    if document["is_local"]:
        found.append("The embedded AWS runs on this machine: the figures say nothing about AWS.")
    return found


def plots(document: Document) -> Iterator[str]:
    cells = _measured(document)
    if not cells:
        return
    by = next((words(name) for name in LOADS if name in cells[0]["levels"]), "trace")
    rate, costs = "requests_per_second", ("usd_per_million_tokens", "usd_per_million_requests")
    cost = next((name for name in costs if any(name in cell["figures"] for cell in cells)), None)
    for name, title, x, y in (
        ("latency-p50", "Latency against throughput", rate, "p50_milliseconds"),
        ("latency-p99", "Latency against throughput", rate, "p99_milliseconds"),
        ("cost", "Cost against latency", "p99_milliseconds", cost),
    ):
        if y and (curves := _curves(cells, x, y)):
            joined = list(curves) != [_UNJOINED]
            titles = f"{title}, by {by}", TITLES[x], TITLES[y]
            yield points_plot(name, *titles, curves, are_joined=joined)
    yield from _heat_maps(cells)


def _curves(cells: Sequence[Document], x: str, y: str) -> dict[str, list[Point]]:
    """Returns a curve for each combination of the other levels, through the loads."""
    groups: dict[str, list[Point]] = {}
    kinds = {name: None for name in _varying(cells) if name not in LOADS}
    for cell in cells:
        figures, levels = cell["figures"], cell["levels"]
        if x in figures and y in figures:
            load = next((shown_level(levels[name]) for name in LOADS if name in levels), "trace")
            point = Point(figures[x]["value"], figures[y]["value"], load)
            groups.setdefault(shown(_only(levels, kinds)) or "all", []).append(point)
    if len(groups) <= _MOST_CURVES:
        return groups
    return {
        _UNJOINED: [
            point._replace(label=f"{name}, load {point.label}")
            for name, found in groups.items()
            for point in found
        ]
    }


def _levels_of(cells: Sequence[Document], name: str) -> list[Any]:
    return list(dict.fromkeys(cell["levels"].get(name) for cell in cells))


def _varying(cells: Sequence[Document]) -> list[str]:
    """Returns the factors with several levels, those with most first."""
    counts = {name: len(_levels_of(cells, name)) for name in FACTORS}
    found = [name for name in FACTORS if counts[name] > 1]
    return sorted(found, key=lambda name: -counts[name])


def _heat_maps(cells: Sequence[Document]) -> Iterator[str]:
    """Yields a map for each combination of levels beside the two factors with most levels."""
    factors = _varying(cells)
    if len(factors) < 2:
        return
    figures = ("tokens_per_second", "p99_milliseconds")
    figure = next((f for f in figures if all(f in c["figures"] for c in cells)), "failed_percent")
    rows, columns = (
        {level: f"{words(name)} {shown_level(level)}" for level in _levels_of(cells, name)}
        for name in factors[:2]
    )
    panels: dict[str, dict[Any, float]] = {}
    for cell in cells:
        row, column, *others = (cell["levels"][name] for name in factors)
        if found := cell["figures"].get(figure):
            name = shown(dict(zip(factors[2:], others, strict=True)))
            panels.setdefault(name, {})[row, column] = found["value"]
    for name, values in islice(panels.items(), _MOST_PANELS):
        title = f"{TITLES[figure]}, {name}" if name else TITLES[figure]
        yield heat_map(title, rows, columns, values)


def _measured(document: Document) -> list[Document]:
    return [cell for cell in document["cells"] if cell["trials"] and not cell["not_measured"]]


def _source(document: Document) -> str:
    published = document["published"]
    here = "the processor of this machine, under the embedded AWS"
    if not document["is_local"]:
        here = "; ".join(_fleets(document)) or "not seen"
    text = f"Source: {published['source']}. Hardware: {published['hardware']}. Here: {here}."
    return f"{text} {published['note']}".strip()


def _fleets(document: Document) -> list[str]:
    return sorted({each for cell in document["cells"] for each in cell["instances"] if each})


def _costs(document: Document) -> list[str]:
    return sorted({cell["cost"] for cell in document["cells"] if cell["cost"]})


def _figure(found: Mapping[str, Any] | None, name: str) -> str:
    if found is None:
        return ""
    text = _number(found["value"])
    if name in _WITH_INTERVAL and found["low"] is not None:
        text += f" ({_number(found['low'])} to {_number(found['high'])})"
    if name == "tokens_per_second" and found["deviation"] is not None:
        text += f", SD {_number(found['deviation'])}"
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
