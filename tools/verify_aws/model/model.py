"""The model that `make verify-aws` deploys: it answers with the text that it is sent, reversed.

DJL Serving calls `handle`. The answer differs from the request, so that nothing but this handler
can have made it.
"""

from __future__ import annotations

from typing import Any

from djl_python import Output  # type: ignore[import-not-found]


def handle(inputs: Any) -> Any:
    """Returns the answer to one request; None for the empty one that DJL Serving begins with."""
    if inputs.is_empty():
        return None
    text = inputs.get_as_json()["inputs"]
    answer = Output().add_as_json({"reversed": text[::-1]})
    return answer.add_property("Content-Type", "application/json")
