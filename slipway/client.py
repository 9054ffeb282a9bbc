"""Lets a boto3 client wait for an endpoint that has scaled to zero, instead of failing.

An endpoint with `mode: scale_to_zero` answers a request with a ValidationError while no copy of the
model is there. That request wakes the endpoint, and it must be sent again until a copy answers:

    runtime = boto3.client("sagemaker-runtime")
    wait_for_wake(runtime, limit_seconds=900)
    runtime.invoke_endpoint(EndpointName=name, InferenceComponentName=name, Body=body)

The module is for callers of endpoints. It stands alone: it imports the standard library only, so
copy the file into a program that has boto3 and not Slipway.

AWS's words for the error, as users and AWS's own blog quote them (read 2026-11-24): "Inference
Component has no capacity to process this request. ApplicationAutoScaling may be in-progress (if
configured) or try to increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API."
https://aws.amazon.com/blogs/machine-learning/unlock-cost-savings-with-the-new-scale-down-to-zero-feature-in-amazon-sagemaker-inference/
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["is_asleep", "wait_for_wake"]

_OPERATIONS = ("InvokeEndpoint", "InvokeEndpointWithResponseStream")
_ASLEEP_CODES = ("ValidationError", "ValidationException")
_ASLEEP_WORDS = "has no capacity to process this request"
# Many callers wait for the same endpoint. Without this they would all ask in the same second.
_LEAST_SHARE = 0.8
# The errors that botocore itself tries again.
_TRANSIENT_STATUSES = (500, 502, 503, 504)
# Of botocore, for a client whose configuration does not say how often it tries.
_DEFAULT_ATTEMPTS = {"legacy": 5}
_DEFAULT_ATTEMPTS_ELSE = 3


def wait_for_wake(
    client: Any,
    *,
    limit_seconds: float = 900.0,
    poll_seconds: float = 10.0,
    on_wait: Callable[[float], None] | None = None,
) -> None:
    """Makes each request of a client wait while its endpoint wakes.

    Only the answer of a sleeping endpoint is waited for. Every other error is raised at once, as
    without this function, and so is the sleeping endpoint's after the limit. Each attempt is signed
    anew. A body that is a file is read once, so that every attempt sends the same bytes. The
    client may be shared by threads: each request has a limit of its own.

    Args:
        client: boto3's client of `sagemaker-runtime`. It is changed.
        limit_seconds: how long one request waits at most.
        poll_seconds: pause between two attempts; 80 to 100 percent of it, at random.
        on_wait: called before each pause, with the seconds that the request has waited so far.

    Raises:
        ValueError: a limit or a pause that is no positive number.
    """
    if not (limit_seconds > 0 and poll_seconds > 0):
        raise ValueError("limit_seconds and poll_seconds must be above 0.")
    waiter = _Waiter(client, limit_seconds, poll_seconds, on_wait)
    for operation in _OPERATIONS:
        client.meta.events.register(f"before-call.sagemaker-runtime.{operation}", _read_body)
        client.meta.events.register(
            f"needs-retry.sagemaker-runtime.{operation}", waiter.pause_seconds
        )


def is_asleep(answer: Mapping[str, Any]) -> bool:
    """Returns whether an error of a request says that no copy of the model is there.

    Args:
        answer: the `response` of botocore's ClientError.
    """
    error = answer.get("Error", {})
    return error.get("Code") in _ASLEEP_CODES and _ASLEEP_WORDS in error.get("Message", "")


class _Waiter:
    """Decides after each attempt whether botocore sends a request again.

    botocore asks every handler of its event `needs-retry`, and takes the first answer that is not
    None. The request's own context holds the state, because threads share this object.
    """

    def __init__(
        self,
        client: Any,
        limit_seconds: float,
        poll_seconds: float,
        on_wait: Callable[[float], None] | None,
    ) -> None:
        self._key = f"slipway_wake_{id(self)}"
        retries = client.meta.config.retries or {}
        default = _DEFAULT_ATTEMPTS.get(retries.get("mode", ""), _DEFAULT_ATTEMPTS_ELSE)
        self._attempts = retries.get("total_max_attempts", default)
        self._limit_seconds = limit_seconds
        self._poll_seconds = poll_seconds
        self._on_wait = on_wait

    def pause_seconds(
        self,
        request_dict: Mapping[str, Any],
        response: tuple[Any, Mapping[str, Any]] | None = None,
        caught_exception: Exception | None = None,
        **_more: Any,
    ) -> float | None:
        """Returns the seconds until the next attempt; None to leave the decision to botocore."""
        state = request_dict["context"].setdefault(self._key, {"asleep_since": None, "failures": 0})
        now = time.monotonic()
        if response is not None and is_asleep(response[1]):
            if state["asleep_since"] is None:
                state["asleep_since"] = now
            state["failures"] = 0
            return self._pause(now - state["asleep_since"])
        if state["asleep_since"] is None or not _is_transient(response, caught_exception):
            return None
        # botocore has counted the waiting as attempts, and would not try again what it tries again
        # for any other request.
        state["failures"] += 1
        if state["failures"] >= self._attempts:
            return None
        return self._pause(now - state["asleep_since"])

    def _pause(self, waited_seconds: float) -> float | None:
        left_seconds = self._limit_seconds - waited_seconds
        if left_seconds <= 0:
            return None
        if self._on_wait is not None:
            self._on_wait(waited_seconds)
        pause = self._poll_seconds * random.uniform(_LEAST_SHARE, 1.0)  # noqa: S311  # no secret
        return min(pause, left_seconds)


def _is_transient(
    response: tuple[Any, Mapping[str, Any]] | None, caught_exception: Exception | None
) -> bool:
    if caught_exception is not None:
        # Imported here, so that reading this module needs nothing.
        from botocore.exceptions import ConnectionError, HTTPClientError

        return isinstance(caught_exception, ConnectionError | HTTPClientError)
    return response is not None and response[0].status_code in _TRANSIENT_STATUSES


def _read_body(params: dict[str, Any], **_more: Any) -> None:
    """Replaces a file by its content, from where the caller left it.

    Otherwise botocore's second attempt would send a file from its beginning, and could not send
    what cannot be read twice.
    """
    read = getattr(params.get("body"), "read", None)
    if read is not None:
        params["body"] = read()
