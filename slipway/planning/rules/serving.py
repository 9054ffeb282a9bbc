"""Rules about artifacts, requests and what the container is told."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.artifacts import any_source
from slipway.planning.deployment import Deployment, problem

# SageMaker's own limit of a realtime request.
_REALTIME_SECONDS = 60


def artifact_exists(deployment: Deployment) -> Iterator[Problem]:
    """Each environment deploys the sample or the release; without either there is no model."""
    if not any_source(deployment):
        yield problem(
            Code.NO_MODEL,
            "there is no model: neither a sample, nor a release, nor weights",
            "Add `artifacts.sample` with the path of a small model for the embedded AWS, and "
            "`artifacts.weights` or `artifacts.release` for the real one.",
            ("artifacts",),
        )


def release_has_one_source(deployment: Deployment) -> Iterator[Problem]:
    """Compiled files and a checkpoint at once: which of them would be deployed?"""
    artifacts = deployment.config.artifacts
    if artifacts.release is not None and artifacts.weights is not None:
        message = "there are two sources of the release: `release` and `weights`"
        remedy = "Keep one of them."
        yield problem(Code.ARTIFACT_SOURCES, message, remedy, ("artifacts", "weights"))
    if artifacts.compile is not None and artifacts.weights is None:
        message = "there are no weights to compile"
        remedy = "Add `artifacts.weights`, or remove `compile`."
        yield problem(Code.ARTIFACT_SOURCES, message, remedy, ("artifacts", "compile"))


def latency_below_timeout(deployment: Deployment) -> Iterator[Problem]:
    """An alarm above the request timeout can never be raised."""
    config = deployment.config
    if config.endpoint.mode == "async":
        return
    limit, where = _REALTIME_SECONDS, "SageMaker's limit"
    if deployment.request_timeout_seconds is not None:
        limit, where = deployment.request_timeout_seconds, "`serving.request_timeout_seconds`"
    milliseconds = config.alarms.model_latency_p99_milliseconds
    if milliseconds / 1000 >= limit:
        yield problem(
            Code.LATENCY_UNREACHABLE,
            f"{milliseconds} ms is never reached: requests end after {limit} s",
            f"Set the latency objective below {where}.",
            ("alarms", "model_latency_p99_milliseconds"),
        )
