"""A run as Markdown and as one HTML page that needs no other file; made of its summary alone."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from slipway.benchmarking.figures import LEAST_TRIALS, TITLES
from slipway.benchmarking.plots import STYLE, Curve, Point, heat_map, points_plot
from slipway.benchmarking.results import Document
from slipway.benchmarking.run import shown_level
from slipway.operations.page import html_page, marked

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""A heading, and rows."""

_LEVELS: Final = (
    "engine",
    "variant",
    "batch",
    "input_tokens",
    "output_tokens",
    "concurrency",
    "requests_per_second",
)
_LOADS: Final = ("concurrency", "requests_per_second")
# Figures with their intervals; the summary has those of all.
_WITH_INTERVAL: Final = (
    "requests_per_second",
    "tokens_per_second",
    "p50_milliseconds",
    "p99_milliseconds",
)
_LEFT_OUT: Final = ("deviation_milliseconds", "late_p99_milliseconds")
_MOST_CURVES: Final = 4
_MOST_PANELS: Final = 6

_PAGE_STYLE: Final = """\
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .4rem 0 }
th, td { padding: .2rem .9rem .2rem 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #d9dfe5 }
th { font-weight: 600; vertical-align: bottom }
th:first-child, td:first-child { text-align: left }
p, li { overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) { th, td { border-color: #2f3842 } }
"""


def title_of(document: Document) -> str:
    """Returns the heading of a report."""
    return f"{document['model']} in {document['environment']}: {document['design']}"


def troubles(document: Document) -> list[str]:
    """Returns what a reader must know before any figure."""
    found = []
    if document["stopped"]:
        found.append(f"PARTIAL: {document['stopped']}. What was measured until then is here.")
    for cell in document["cells"]:
        if cell["not_measured"]:
            found.append(f"NO RESULT: {_shown(cell['levels'])}: {cell['not_measured']}.")
        elif cell["client_bound_trials"]:
            found.append(
                f"{cell['client_bound_trials']} trials of {_shown(cell['levels'])} do not count: "
                "the client was the bottleneck."
            )
        if len(cell["instances"]) > 1:
            found.append(
                f"The instances changed during {_shown(cell['levels'])}: "
                f"{'; '.join(cell['instances'])}."
            )
    return found


def results_table(document: Document) -> Table:
    """Returns each cell that has a result."""
    cells = _measured(document)
    levels = [name for name in _LEVELS if any(name in cell["levels"] for cell in cells)]
    batches = any(cell["levels"].get("batch", 1) > 1 for cell in cells)
    names = [
        name
        for name in TITLES
        if name not in _LEFT_OUT
        and ("items" not in name or batches)
        and any(name in cell["figures"] for cell in cells)
    ]
    heading = [*(_words(name) for name in levels), *(TITLES[name] for name in names)]
    rows = [
        [
            *(_level(cell["levels"].get(name)) for name in levels),
            *(_figure(cell["figures"].get(name), name) for name in names),
        ]
        for cell in cells
    ]
    return heading, rows


def published_table(document: Document) -> Table | None:
    """Returns the published rows, each with what was measured here at its levels."""
    published = document["published"]
    if not published or not published["rows"]:
        return None
    keys = list(dict.fromkeys(key for row in published["rows"] for key in row))
    labels = [key for key in keys if key not in TITLES or (key in _LEVELS and key not in TITLES)]
    figures = [key for key in keys if key in TITLES]
    heading = [
        *map(_words, labels),
        *(text for key in figures for text in (f"published {TITLES[key]}", f"here {TITLES[key]}")),
    ]
    rows = []
    for row in published["rows"]:
        cells = [cell for cell in _measured(document) if _matches(row, cell["levels"])]
        rows.append(
            [
                *(str(row.get(key, "")) for key in labels),
                *(
                    text
                    for key in figures
                    for text in (str(row.get(key, "")), _here(cells, key) if key in row else "")
                ),
            ]
        )
    return heading, rows


def _matches(row: Mapping[str, Any], levels: Mapping[str, Any]) -> bool:
    shared = [name for name in _LEVELS if name in row and name in levels and name not in TITLES]
    return all(row[name] == levels[name] for name in shared)


def _here(cells: Sequence[Document], figure: str) -> str:
    values = [cell["figures"][figure]["value"] for cell in cells if figure in cell["figures"]]
    if not values:
        return "not measured"
    low, high = min(values), max(values)
    return _number(low) if low == high else f"{_number(low)} to {_number(high)}"


def failures_table(document: Document) -> Table | None:
    """Returns how often requests failed, by cell and kind."""
    rows = [
        [_shown(cell["levels"]), kind, f"{count:,}"]
        for cell in document["cells"]
        for kind, count in cell["failures"].items()
    ]
    return (["levels", "failure", "requests"], rows) if rows else None


def circumstances(document: Document) -> list[str]:
    """Returns how the figures were made."""
    client = document["client"]
    loop = (
        "Open loop: a latency counts from the request's time, also while it waits to be sent."
        if document["is_open"]
        else "Closed loop: each client sends its next request when it has its answer."
    )
    count = document["trials"]
    intervals = (
        f"A figure is the median of {count} trials; in brackets its 95 % interval (bootstrap)."
        if count >= LEAST_TRIALS
        else f"A figure is the median of {count} trials, which are too few for an interval."
    )
    costs = sorted({cell["cost"] for cell in document["cells"] if cell["cost"]})
    fleets = _fleets(document)
    tests = [
        f"{shown_level(each['concurrency'], each['requests_per_second'])} "
        f"{each['reason'] or 'passed'}"
        for each in document["self_test"]
    ]
    found = [
        f"Endpoint {document['endpoint']} in {document['region']}, design "
        f"`{document['design']}`: {document['description']}.",
        f"From {document['began_at']} to {document['ended_at']}; order and texts by seed "
        f"{document['seed']}.",
        loop,
        intervals,
        f"Instances: {'; '.join(fleets) or 'not seen'}. Cost: {'; '.join(costs) or 'not known'}.",
        f"Client: Slipway {client['slipway']}, Python {client['python']}, {client['system']}, "
        f"{client['cores']} cores, load average {client['load_average']}.",
    ]
    if tests:
        found.append(f"Self-test of the client against a server of 50 ms: {'; '.join(tests)}.")
    if document["tokenizer"]:
        found.append(f"Tokens are counted with `{document['tokenizer']}`, without special tokens.")
    if document["is_local"]:
        found.append("The embedded AWS runs on this machine: the figures say nothing about AWS.")
    return found


def as_markdown(document: Document) -> str:
    """Returns the report as Markdown."""
    parts = [
        f"# {title_of(document)}",
        *(f"**{_escaped(text)}**" for text in troubles(document)),
    ]
    parts.append(_markdown_table(results_table(document)))
    published = document["published"]
    if published:
        parts += ["## Published", _source(document)]
        table = published_table(document)
        parts += [_markdown_table(table)] if table else []
    if failures := failures_table(document):
        parts += ["## Failures", _markdown_table(failures)]
    parts += ["## Circumstances", "\n".join(f"- {text}" for text in circumstances(document))]
    return "\n\n".join(parts) + "\n"


def as_html(document: Document) -> str:
    """Returns the report as a page without a script and without an address that is loaded."""
    published = document["published"]
    parts = [
        *(f'<p class="trouble">{marked(text)}</p>' for text in troubles(document)),
        "<h2>Results</h2>",
        _html_table(results_table(document)),
        '<h2>Plots</h2>\n<div class="plots">',
        *plots(document),
        "</div>",
        *(f"<p>{marked(text)}</p>" for text in _no_plots(document)),
    ]
    if published:
        parts += ["<h2>Published</h2>", f"<p>{marked(_source(document))}</p>"]
        table = published_table(document)
        parts += [_html_table(table)] if table else []
    if failures := failures_table(document):
        parts += ["<h2>Failures</h2>", _html_table(failures)]
    parts += [
        "<h2>Circumstances</h2>\n<ul>",
        *(f"<li>{marked(text)}</li>" for text in circumstances(document)),
        "</ul>",
    ]
    return html_page(title_of(document), STYLE + _PAGE_STYLE, parts)


def plots(document: Document) -> Iterator[str]:
    """Yields the plots that the cells allow."""
    cells = _measured(document)
    if not cells:
        return
    by = next((_words(name) for name in _LOADS if name in cells[0]["levels"]), "trace")
    for figure, name in (("p50_milliseconds", "p50"), ("p99_milliseconds", "p99")):
        curves = _curves(cells, "requests_per_second", figure)
        if curves:
            yield points_plot(
                f"latency-{name}",
                f"Latency against throughput, by {by}",
                "requests/s",
                f"{name}, ms",
                curves,
            )
    yield from _heat_maps(cells)
    cost = _cost_figure(cells)
    if cost and (curves := _curves(cells, "p99_milliseconds", cost)):
        yield points_plot("cost", f"Cost against latency, by {by}", "p99, ms", TITLES[cost], curves)


def _no_plots(document: Document) -> Iterator[str]:
    if not _cost_figure(_measured(document)):
        costs = sorted({cell["cost"] for cell in document["cells"] if cell["cost"]})
        yield f"No plot of cost against latency: {'; '.join(costs) or 'no cost is known'}."


def _cost_figure(cells: Sequence[Document]) -> str | None:
    for name in ("usd_per_million_tokens", "usd_per_million_requests"):
        if any(name in cell["figures"] for cell in cells):
            return name
    return None


def _curves(cells: Sequence[Document], x: str, y: str) -> list[Curve]:
    """Returns a curve for each combination of the other levels, through the loads."""
    groups: dict[str, list[Point]] = {}
    varying = _varying(cells)
    for cell in cells:
        figures, levels = cell["figures"], cell["levels"]
        if x not in figures or y not in figures:
            continue
        group = _shown({k: v for k, v in levels.items() if k in varying and k not in _LOADS})
        load = next((_level(levels[name]) for name in _LOADS if name in levels), "trace")
        groups.setdefault(group, []).append(Point(figures[x]["value"], figures[y]["value"], load))
    if len(groups) <= _MOST_CURVES:
        return [Curve(name or "all", tuple(points)) for name, points in groups.items()]
    points = [
        Point(point.x, point.y, f"{name}, load {point.label}")
        for name, found in groups.items()
        for point in found
    ]
    return [Curve("cells", tuple(points), is_joined=False)]


def _varying(cells: Sequence[Document]) -> list[str]:
    """Returns the factors with several levels."""
    return [name for name in _LEVELS if len({str(cell["levels"].get(name)) for cell in cells}) > 1]


def _heat_maps(cells: Sequence[Document]) -> Iterator[str]:
    """Yields a panel for each combination of levels beside the two factors with most levels."""

    def levels_of(name: str) -> list[Any]:
        return list(dict.fromkeys(c["levels"][name] for c in cells if name in c["levels"]))

    factors = sorted(_varying(cells), key=lambda name: -len(levels_of(name)))
    if len(factors) < 2:
        return
    row, column = factors[:2]
    figure = next(
        name
        for name in ("tokens_per_second", "p99_milliseconds", "failed_percent")
        if all(name in cell["figures"] for cell in cells) or name == "failed_percent"
    )
    panels: dict[str, list[Document]] = {}
    for cell in cells:
        panels.setdefault(_shown({n: cell["levels"][n] for n in factors[2:]}), []).append(cell)
    for number, (name, members) in enumerate(list(panels.items())[:_MOST_PANELS]):
        found = {
            (cell["levels"][row], cell["levels"][column]): cell["figures"]
            .get(figure, {})
            .get("value")
            for cell in members
        }
        yield heat_map(
            f"heat-{number}",
            f"{TITLES[figure]}{f', {name}' if name else ''}",
            (_words(row), [_level(each) for each in levels_of(row)]),
            (_words(column), [_level(each) for each in levels_of(column)]),
            [[found.get((r, c)) for c in levels_of(column)] for r in levels_of(row)],
        )


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


def _level(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _shown(levels: Mapping[str, Any]) -> str:
    return ", ".join(f"{_words(name)} {_level(value)}" for name, value in levels.items())


def markdown_table(table: Table) -> str:
    """Returns a table as Markdown; numbers are right-aligned."""
    heading, rows = table
    rule = ["---", *("---:" for _ in heading[1:])]
    cells = [heading, rule, *rows]
    return "\n".join(
        f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |" for row in cells
    )


def _markdown_table(table: Table) -> str:
    return markdown_table(table) if table[1] else "No cell has a result."


def _escaped(text: str) -> str:
    return text.replace("*", r"\*")


def _html_table(table: Table) -> str:
    heading, rows = table
    if not rows:
        return "<p>No cell has a result.</p>"
    head = "".join(f"<th>{escape(text)}</th>" for text in heading)
    body = "\n".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows
    )
    return (
        f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )
