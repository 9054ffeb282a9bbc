"""What a build reports: the published artifact, or the problems; as JSON in the artifact bucket."""

import json
from dataclasses import asdict
from typing import Any

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError
from slipway.planning.lock import LockedArtifact
from slipway.planning.remote_place import RESULTS_PREFIX
from slipway.publishing.publish import Made


def result_key(build: str) -> str:
    """Returns the key of the result of a build by its id, `PROJECT:UUID`."""
    return f"{RESULTS_PREFIX}{build.rpartition(':')[2]}.json"


def made_result(made: Made) -> bytes:
    locked = made.locked.model_dump(mode="json", exclude_none=True)
    return _render({"locked": locked, "moved_bytes": made.moved_bytes})


def problem_result(error: UserError) -> bytes:
    return _render({"problems": [asdict(problem) for problem in error.problems]})


def read_result(content: bytes) -> Made:
    """Reads a result; raises the `UserError` of a build that found problems."""
    result = json.loads(content)
    if "problems" in result:
        raise UserError([_read(problem) for problem in result["problems"]])
    return Made(
        LockedArtifact.model_validate_json(json.dumps(result["locked"])), result["moved_bytes"]
    )


def _render(content: dict[str, Any]) -> bytes:
    return json.dumps({"version": 1, **content}, indent=2).encode()


def _read(written: dict[str, Any]) -> Problem:
    place = written["location"]
    return Problem(
        Code(written["code"]),
        Kind(written["kind"]),
        written["message"],
        written["remedy"],
        tuple(written["field"]),
        None if place is None else Location(**place),
    )
