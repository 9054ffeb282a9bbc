"""Makes pages of the results of `make verify-gpu` and `make verify-neuron`.

    python -m tools.hardware_report build/verify-gpu/result.json

A result goes to benchmarks/results, as JSON and as a page. docs/fidelity.md then lists all results
that are there. A new result of the same kind of device replaces the earlier one.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.program import ROOT, ExitOneParser
from benchmarks.report import Context, items, page, table

# Any: JSON.
Result: TypeAlias = Mapping[str, Any]

_BEGIN, _END = "<!-- hardware results: begin -->", "<!-- hardware results: end -->"
_NOTHING = "Neither command has run on its hardware so far."


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    parser = ExitOneParser(prog="python -m tools.hardware_report", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("result", type=Path, help="the command's result.json")
    given = parser.parse_args(arguments).result
    try:
        result = json.loads(given.read_text("utf-8"))
        name, shown = _file_name(result), _page(result)
    except OSError as error:
        parser.error(f"{given} cannot be read: {error.strerror}")
    except (ValueError, LookupError, TypeError, AttributeError):
        parser.error(f"{given} is not a result of make verify-gpu or make verify-neuron")
    if result["quick"]:
        parser.error(f"{given} is a rehearsal's, with small models: run it without --quick")
    folder = root / "benchmarks" / "results"
    _write(folder / f"{name}.json", json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    _write(folder / f"{name}.md", shown)
    fidelity = root / "docs" / "fidelity.md"
    _write(fidelity, listed(fidelity.read_text("utf-8"), folder))
    return 0


def listed(text: str, folder: Path) -> str:
    """Returns the page docs/fidelity.md with a line for each result."""
    results = sorted(folder.glob("verify-*.json"))
    lines = items(*(_line(json.loads(each.read_text("utf-8"))) for each in results)) or _NOTHING
    before, _, rest = text.partition(_BEGIN)
    return f"{before}{_BEGIN}\n\n{lines}\n\n{_END}{rest.partition(_END)[2]}"


def _line(result: Result) -> str:
    run = Context.of(result)
    commit = f"commit {run.commit.id[:12]}" if run.commit else "no commit"
    if run.commit and run.commit.modified:
        commit += " with uncommitted changes"
    place = f"../benchmarks/results/{_file_name(result)}.md"
    return (
        f"**{_device(result)}**, `{run.command}`, {run.started_at:%Y-%m-%d}, {commit}: "
        f"{_verdict(result)} ([result]({place}))."
    )


def _verdict(result: Result) -> str:
    steps = result["steps"]
    good = [step for step in steps if step["outcome"] == "ok"]
    others = [f"{each['name']} {each['outcome']}" for each in steps if each not in good]
    return "; ".join([f"{len(good)} of {len(steps)} steps succeeded", *others])


def _device(result: Result) -> str:
    return str(result["device"].get("name") or result["device"]["instance type"])


def _file_name(result: Result) -> str:
    kind = re.sub(r"[^a-z0-9]+", "-", _device(result).lower()).strip("-")
    return f"{result['verification']}-{kind}"


def _page(result: Result) -> str:
    device = items(*_facts(result["device"]))
    steps = [(each["name"], each["outcome"], f"{each['seconds']:g}") for each in result["steps"]]
    return page(
        (
            f"# {Context.of(result).command} on {_device(result)}",
            f"**{_verdict(result)}.**",
            table(("step", "outcome", "seconds"), steps),
            *(part for step in result["steps"] for part in _section(step)),
            f"## Device\n\n{device}",
            f"## Circumstances\n\n{Context.of(result).as_list()}",
        )
    )


def _section(step: Result) -> Iterator[str]:
    yield f"## {step['name']}"
    if step["detail"]:
        yield f"```\n{step['detail']}\n```"
    if step.get("facts"):
        yield items(*_facts(step["facts"]))
    if step.get("rows"):
        yield table(step["header"], [tuple(map(_shown, row)) for row in step["rows"]])


def _facts(facts: Mapping[str, str | float | None]) -> Iterator[str]:
    for name, value in facts.items():
        yield f"{name}: {'not known' if value is None else _shown(value)}"


def _shown(value: str | float | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:,.6g}" if value < 1 else f"{value:,}"


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    print(f"wrote {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
