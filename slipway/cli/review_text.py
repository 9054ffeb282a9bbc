"""A review for people: as text, and as the comment of a merge request."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from slipway.cli.colours import heading
from slipway.cli.costs import figures
from slipway.cli.output import as_lines
from slipway.operations.reviewing import ChangeReview
from slipway.planning.cost import UsdPerMonth
from slipway.planning.review import Change, ModelReview

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
    """Returns the review for a terminal.

    Args:
        review: of every model.
        templates: how the templates differ, by environment.
    """
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
    if review.cost_before != review.cost_after:
        yield "cost", _cost(review)
    for change in review.changes:
        shown = _arrow(change) if change.before else change.after
        yield "leads to", f"{change.name}: {shown}"
    for each in review.reach:
        yield "widened" if each.is_wider else "narrowed", each.text


def _arrow(change: Change) -> str:
    before, after = (
        _ARTIFACT.sub(r"\1", each or _NOT_SET) for each in (change.before, change.after)
    )
    return f"{before} -> {after}"


def _cost(review: ModelReview) -> str:
    sides = (review.cost_before, review.cost_after)
    return f"{' -> '.join(_usd(each) for each in sides if each is not None)} USD a month"


def _usd(cost: UsdPerMonth) -> str:
    return "unknown" if cost == UsdPerMonth(None, None, None) else figures(cost, "")


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
    sides = (review.cost_before, review.cost_after)
    known = [
        "unknown" if each.expected is None else f"{each.expected:,.0f}"
        for each in sides
        if each is not None
    ]
    return " -> ".join(dict.fromkeys(known)) or "unknown"


def _literal(text: str) -> str:
    """Returns text that a page shows as it is, on one line, with its `commands` as code.

    Values of a config may have Markdown, HTML, and names of users and issues.
    """
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    text = _ACTIVE.sub(r"\\\g<0>", text.replace("&", "&amp;").replace("<", "&lt;"))
    return _LINKED.sub(r"\g<0>&#8203;", text)
