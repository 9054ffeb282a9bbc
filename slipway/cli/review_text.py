"""A review for people: as text, and as the comment of a merge request."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from slipway.cli.cost import figures, part_text
from slipway.cli.output import as_lines, heading
from slipway.operations.reviewing import ChangeReview
from slipway.planning.cost import UsdPerMonth
from slipway.planning.review import NEW, REMOVED, Change, ModelReview

MARK = "<!-- slipway review -->"
"""Begins a comment, so that a job finds the one to update."""

_CODE = re.compile(r"(`[^`|]+`)")
# Characters of Markdown. An underscore within a word is none; some are at the beginning alone.
_ACTIVE = re.compile(r"^[#>+-]|[\\`|*~$\[\]]|(?<![^\W_])_|_(?![^\W_])")
# Before a name or a number they make links and send messages, unless something invisible follows.
_LINKED = re.compile(r"(?<!\w)@(?=\w)|#(?=\d)")
# GitHub refuses a longer one than 65,536: https://github.com/orgs/community/discussions/27190.
_COMMENT_CHARACTERS = 65_000
_NO_CHANGE = "No model's deployment changes."
_NOT_SET = "not set"
# Of an artifact's address, as many digits of its digest as tell two apart.
_ARTIFACT = re.compile(r"s3://\S+/artifacts/(\w{1,12})\w*/files/")


def as_text(review: ChangeReview, templates: Mapping[str, str]) -> str:
    """Returns the review for a terminal, with how the templates differ, by environment."""
    parts = [_model(each) for each in review.models]
    if not (parts or review.problems):
        parts = [_NO_CHANGE]
    parts += [f"{heading(f'templates of `{name}`')}\n{diff}" for name, diff in templates.items()]
    return "\n\n".join(parts)


def _model(review: ModelReview) -> str:
    title = heading(f"{review.model} in `{review.environment}`")
    rows = [("verdict", f"{review.verdict}: {review.reason}"), *review_rows(review)]
    rows += [("warning", each) for each in review.warnings]
    return f"{title}\n{as_lines([(f'  {name}', value) for name, value in rows])}"


def review_rows(review: ModelReview) -> Iterator[tuple[str, str]]:
    """Yields what is behind a verdict, as labels and values."""
    for effect in review.consequences.effects if review.consequences else ():
        edit = f": {_arrow(Change('', effect.before, effect.after))}"
        edit = edit if (effect.before, effect.after) != (None, None) else ""
        yield effect.consequence, f"{effect.setting}{edit} ({effect.reason})"
    if len(set(_sides(review))) > 1 or review.verdict in (NEW, REMOVED):
        yield "cost", _cost(review)
    for each in review.bill:
        [name] = {part.name for part in (each.before, each.after) if part is not None}
        shown = " -> ".join(
            "none" if p is None else part_text(p) for p in (each.before, each.after)
        )
        yield "bill", f"{name}: {shown}"
    for change in review.changes:
        shown = _arrow(change) if change.before else change.after or ""
        yield "leads to", f"{change.name}: {shown}"
    for way in review.reach:
        yield "widened" if way.is_wider else "narrowed", way.text


def _arrow(change: Change) -> str:
    before, after = (
        _ARTIFACT.sub(r"\1", each or _NOT_SET) for each in (change.before, change.after)
    )
    return f"{before} -> {after}"


def _cost(review: ModelReview) -> str:
    sides = list(_sides(review))
    shown = [
        _short(*each, 0) if each[0].expected is None else figures(each[0], "") for each in sides
    ]
    if len(set(shown)) < len(shown):  # an alarm costs cents
        shown = [f"{_short(*each, 2)} expected" for each in sides]
    return f"{' -> '.join(shown)} USD a month"


def _sides(review: ModelReview) -> Iterator[tuple[UsdPerMonth, float | None]]:
    for cost, known in (
        (review.cost_before, review.known_before),
        (review.cost_after, review.known_after),
    ):
        if cost is not None:
            yield cost, known


def _short(cost: UsdPerMonth, known: float | None, decimals: int) -> str:
    if cost.expected is not None:
        return f"{cost.expected:,.{decimals}f}"
    return "unknown" if known is None else f"{known:,.{decimals}f} + unknown"


def as_markdown(review: ChangeReview, templates: Mapping[str, str]) -> str:
    """Returns the review as a comment: a table of models, then what is behind each."""
    lines = [MARK, f"### Compared with {_literal(review.base)}", ""]
    if not (review.models or review.problems):
        lines += [_NO_CHANGE, ""]
    if review.models:
        lines += ["| model | environment | verdict | USD a month, expected |", "| --- " * 4 + "|"]
    for each in review.models:
        verdict = f"**{each.verdict}**: {_literal(each.reason)}"
        cells = (f"`{each.model}`", each.environment, verdict, _expected(each))
        lines.append(f"| {' | '.join(cells)} |")
    # A block each: a comment has whole ones.
    for each in review.models:
        rows = [*review_rows(each), *(("warning", warning) for warning in each.warnings)]
        if rows:
            table = [f"| {_literal(name)} | {_literal(value)} |" for name, value in rows]
            title = f"\n#### {each.model} in {each.environment}\n"
            lines.append("\n".join([title, "| kind | change |", "| --- | --- |", *table]))
    for problem in review.problems:
        lines.append(f"\n- {'<br>'.join(map(_literal, str(problem).splitlines()))}")
    for name, diff in templates.items():
        # No line begins with backticks: each has the mark of a diff, and JSON has no line breaks.
        folded = f"````diff\n{diff.rstrip()}\n````"
        lines.append(f"\n<details><summary>Templates of {name}</summary>\n\n{folded}\n\n</details>")
    return _within_a_comment(lines)


def _within_a_comment(blocks: Sequence[str]) -> str:
    """Returns the blocks that a comment of GitHub has room for, and says how many it has not."""
    sizes = itertools.accumulate(len(block) + 1 for block in blocks)
    kept = sum(size <= _COMMENT_CHARACTERS for size in sizes)
    if kept == len(blocks):
        return "\n".join(blocks)
    left_out = (
        f"\n{len(blocks) - kept} more parts are too long for a comment: see `slipway review`."
    )
    return "\n".join([*blocks[:kept], left_out])


def _expected(review: ModelReview) -> str:
    shown = [_short(*each, 0) for each in _sides(review)]
    return " -> ".join(dict.fromkeys(shown)) or "unknown"


def _literal(text: str) -> str:
    """Returns text that a page shows as it is, on one line, with its `commands` as code.

    Values of a config may have Markdown, HTML, and names of users and issues.
    """
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    text = _ACTIVE.sub(r"\\\g<0>", text.replace("&", "&amp;").replace("<", "&lt;"))
    return _LINKED.sub(r"\g<0>&#8203;", text)
