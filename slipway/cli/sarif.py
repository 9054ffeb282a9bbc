"""Problems as SARIF, which code review services show beside the line.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from collections.abc import Sequence
from typing import Any

import slipway
from slipway.codes.code import Code, OwnCode
from slipway.codes.table import entries
from slipway.errors import Problem


def sarif_log(problems: Sequence[Problem]) -> dict[str, Any]:
    """Returns a SARIF 2.1.0 log with one result for each problem, and a rule for each code."""
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
