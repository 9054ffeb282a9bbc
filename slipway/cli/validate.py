"""`slipway validate`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import slipway
from slipway.cli import output
from slipway.codes.code import Code, OwnCode
from slipway.errors import Problem, UserError

if TYPE_CHECKING:
    from slipway.config.environments import Environment
    from slipway.project import Checked

_NAMED = 4


def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Models, or patterns such as 'bert-*'. Default: all models.",
            autocompletion=output.model_names,
        ),
    ] = None,
    env: output.AnyEnvironmentOption = None,
    sarif: Annotated[
        Path | None, typer.Option(help="SARIF file for the problems, for code review services.")
    ] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Check model configs where they are deployed: every problem, with its place and remedy."""
    from slipway.planning.advice import NO_SOURCE

    project = output.current_project()
    environments = [
        project.environment(each) for each in ([env] if env else project.environment_names)
    ]
    selected = project.select(names or ["*"]) if project.files or names else []
    checked = {name: project.check(name, environments) for name in selected}
    # A policy that does not work is one problem, whichever models it looks at.
    found = (problem for each in checked.values() for problem in each.problems)
    problems = list(dict.fromkeys(found))
    if sarif is not None:
        try:
            output.write_file(sarif, json.dumps(sarif_log(problems), indent=2) + "\n", str(sarif))
        except UserError as error:
            problems += error.problems
    if problems:
        raise UserError(problems)
    # Whether it was published is a question for the deploy, not for the file.
    warnings = {
        name: [item for item in found.warnings if item.code != "unpublished"]
        for name, found in checked.items()
    }
    if as_json:
        shown = {name: [asdict(item) for item in items] for name, items in warnings.items()}
        deploying = {name: list(found.deploying) for name, found in checked.items()}
        output.print_json(
            {"valid": selected, "environments": deploying, "problems": [], "warnings": shown}
        )
        return
    without = [n for n, items in warnings.items() if NO_SOURCE in {i.code for i in items}]
    note = f" There is {_nothing(environments)} to deploy there of {_listed(without)}."
    typer.echo(f"{_valid(env, environments, checked)}{note if without else ''}")


def _valid(
    env: str | None, environments: Sequence[Environment], checked: Mapping[str, Checked]
) -> str:
    count = f"{len(checked)} model config{'' if len(checked) == 1 else 's'} valid"
    if env is not None:
        return f"{count} for `{env}`."
    deployed = {
        each.name: sum(each.name in found.deploying for found in checked.values())
        for each in environments
    }
    parts = [f"{number} for `{name}`" for name, number in deployed.items() if number]
    return f"{count}: {', '.join(parts)}." if parts else f"{count}."


def _nothing(environments: Sequence[Environment]) -> str:
    kinds = dict.fromkeys(environment.artifacts for environment in environments)
    return f"no {' or '.join(kinds)}"


def _listed(names: Sequence[str]) -> str:
    """Returns the first of many names, because more would bury the rest of the line."""
    named, left = names[:_NAMED], len(names) - _NAMED
    return ", ".join(named) + (f" and {left} more" if left > 0 else "")


def sarif_log(problems: Sequence[Problem]) -> dict[str, Any]:
    """Returns a log with one result for each problem, which code reviews show beside the line.

    https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
    """
    codes = sorted({problem.code for problem in problems})
    rules = [_rule(code) for code in codes]
    driver = {"name": "slipway", "version": slipway.__version__, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [_result(problem) for problem in problems],
            }
        ],
    }


def _rule(code: Code | OwnCode) -> dict[str, Any]:
    from slipway.codes.table import entries

    if not isinstance(code, Code):
        return {"id": code, "shortDescription": {"text": f"The project's own {code}"}}
    entry = entries()[code]
    return {
        "id": entry.code.value,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.cause},
        "help": {"text": entry.remedy, "markdown": entry.remedy},
    }


def _result(problem: Problem) -> dict[str, Any]:
    shown = problem.as_json()
    subject = f"{shown['field']}: " if shown["field"] else ""
    result: dict[str, Any] = {
        "ruleId": str(problem.code),
        "level": "error",
        "message": {"text": f"{subject}{problem.message}\n{problem.remedy}"},
    }
    place = problem.location
    if place is not None:
        physical: dict[str, Any] = {"artifactLocation": {"uri": place.path}}
        if place.line:
            physical["region"] = {"startLine": place.line, "startColumn": place.column}
        result["locations"] = [{"physicalLocation": physical}]
    return result
