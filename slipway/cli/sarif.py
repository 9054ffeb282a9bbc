"""Problems as SARIF, which code review services show beside the line.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import slipway
from slipway.errors import Kind, Problem

_RULES = {
    Kind.SHAPE: "The form of a file is wrong.",
    Kind.VALUE: "A value is not one that is allowed.",
    Kind.COMPATIBILITY: "Values do not go together.",
    Kind.STATE: "Something outside the file is not as it has to be.",
}


def sarif_log(problems: Sequence[Problem]) -> dict[str, Any]:
    """Returns a SARIF 2.1.0 log with one result for each problem."""
    rules = [
        {"id": kind.value, "shortDescription": {"text": text}} for kind, text in _RULES.items()
    ]
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


def _result(problem: Problem) -> dict[str, Any]:
    shown = problem.as_json()
    subject = f"{shown['field']}: " if shown["field"] else ""
    result: dict[str, Any] = {
        "ruleId": problem.kind.value,
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
