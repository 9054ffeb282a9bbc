"""Rules about artifacts, requests and what is compiled for an accelerator."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.facts.instances import instance_types
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


def checkpoint_is_compiled(deployment: Deployment) -> Iterator[Problem]:
    """Yields a problem where weights are given and nothing compiles them."""
    artifacts, needs = deployment.config.artifacts, deployment.needs_compiled_model
    if needs and artifacts.weights is not None and artifacts.compile is None:
        yield problem(
            Code.NOT_COMPILED,
            f"the container `{deployment.container}` serves compiled models, and nothing compiles "
            "the weights",
            "Add `artifacts.compile` with the instance type that compiles, or set "
            "`artifacts.release` to a model compiled already.",
            ("artifacts", "weights"),
        )


def compiles_on_the_endpoints_gpu(deployment: Deployment) -> Iterator[Problem]:
    """An engine is built on the GPU that it is to run on (facts: tensorrt-triton)."""
    compiling = deployment.config.artifacts.compile
    if compiling is None or not deployment.builds_engine:
        return
    host = instance_types()[compiling.instance]
    if not host.accelerator_known:
        return
    for placement in deployment.placements:
        wanted, has = placement.instance.compute_capability, host.compute_capability
        if wanted is not None and wanted != has:
            yield problem(
                Code.COMPILE_INSTANCE,
                f"{host.name} has {host.accelerator_title}; the endpoint's "
                f"{placement.instance.name} has {placement.instance.accelerator_title}",
                f"Compile on a type with {wanted}, for example `{placement.instance.name}`.",
                ("artifacts", "compile", "instance"),
            )
            return


def engine_fits_gpu(deployment: Deployment) -> Iterator[Problem]:
    """A TensorRT engine loads on one compute capability only (facts: tensorrt-triton)."""
    release = deployment.config.artifacts.release
    if not deployment.builds_engine or not deployment.deploys_release or release is None:
        return
    for instance in deployment.instances:
        capability = instance.compute_capability
        if capability is not None and release.target != capability:
            yield problem(
                Code.COMPILED_FOR_ANOTHER,
                f"the engine was built for {release.target}, but {instance.name} has "
                f"{instance.accelerator_title}",
                f"Build the engine for {capability}, or choose an instance type with "
                f"{release.target}.",
                ("artifacts", "release", "target"),
            )


def fallback_types_share_one_target(deployment: Deployment) -> Iterator[Problem]:
    """A pool has one artifact: an engine for one compute capability (facts: hosting, rule 12)."""
    # `instances` may be missing, which is a problem of its own.
    if not deployment.builds_engine or not deployment.placements:
        return
    for placement in deployment.placements[1:]:
        first, capability = deployment.placements[0], placement.instance.compute_capability
        wanted = first.instance.compute_capability
        if None not in (wanted, capability) and capability != wanted:
            yield problem(
                Code.POOL_OF_TARGETS,
                f"{placement.instance.name} has {placement.instance.accelerator_title}, and "
                f"{first.instance.name} has {first.instance.accelerator_title}: one engine does "
                "not run on both",
                f"Use types with {wanted} only, or give {placement.instance.name} an engine of its "
                "own with `endpoint.model_overrides`.",
                placement.field,
            )
