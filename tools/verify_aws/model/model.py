"""The model that `make verify-aws` deploys: it answers with the reversed text of the request.

DJL Serving calls `handle`. The answer differs from the request, so only this handler can have made
it.
"""

from __future__ import annotations

from typing import Any

from djl_python import Output  # type: ignore[import-not-found]


def handle(inputs: Any) -> Any:
    """Returns the answer to a request; None for the empty first request of DJL Serving."""
    if inputs.is_empty():
        return None
    text = inputs.get_as_json()["inputs"]
    answer = Output().add_as_json({"reversed": text[::-1]})
    return answer.add_property("Content-Type", "application/json")
