"""The model that `make verify-aws` deploys: it answers with the reversed text of the request.

DJL Serving calls `handle`. The answer differs from the request, so only this handler can have made
it.

`make verify-aws DEEP=1` has it fail on purpose. VERIFY_AWS_FAULT is `none`, `start` (the model
cannot be loaded) or `requests` (every request fails). One text always fails.
"""

from __future__ import annotations

import os
from typing import Any

from djl_python import Output  # type: ignore[import-not-found]

_FAULT = os.environ.get("VERIFY_AWS_FAULT", "none")
_FAILING_TEXT = "fail"

if _FAULT == "start":
    raise RuntimeError("VERIFY_AWS_FAULT is start: the model fails on purpose")


def handle(inputs: Any) -> Any:
    """Returns the answer to a request; None for the empty first request of DJL Serving."""
    if inputs.is_empty():
        return None
    text = inputs.get_as_json()["inputs"]
    if _FAULT == "requests" or text == _FAILING_TEXT:
        return Output(code=500).add_as_json({"error": "a failure on purpose"})
    answer = Output().add_as_json({"reversed": text[::-1]})
    return answer.add_property("Content-Type", "application/json")
