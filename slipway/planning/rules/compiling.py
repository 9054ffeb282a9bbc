"""Rules about what is compiled for an accelerator, and for which."""

from __future__ import annotations

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.serving import TritonServing
from slipway.errors import Problem
from slipway.facts.instances import instance_types
from slipway.planning.rules.situation import Situation, problem


def checkpoint_is_compiled(situation: Situation) -> Iterator[Problem]:
    """TensorRT and Neuron load what was compiled, and no checkpoint."""
    config = situation.config
    serving, artifacts = config.serving, config.artifacts
    engine = serving.container in ("tensorrt", "neuron") or (
        isinstance(serving, TritonServing) and serving.backend == "tensorrt"
    )
    if engine and artifacts.weights is not None and artifacts.compile is None:
        yield problem(
            Code.NOT_COMPILED,
            f"the container `{serving.container}` serves compiled models, and nothing compiles "
            "the weights",
            "Add `artifacts.compile` with the instance type that compiles, or set "
            "`artifacts.release` to a model compiled already.",
            ("artifacts", "weights"),
        )


def custom_image_compiles_itself(situation: Situation) -> Iterator[Problem]:
    """Slipway does not know how another's container compiles."""
    config = situation.config
    if config.serving.container == "custom" and config.artifacts.compile is not None:
        yield problem(
            Code.CUSTOM_COMPILE,
            "Slipway cannot compile for a container of your own",
            "Remove `compile`: the weights are published as they are.",
            ("artifacts", "compile"),
        )


def compiles_on_the_endpoints_gpu(situation: Situation) -> Iterator[Problem]:
    """An engine is built on the GPU that it is to run on (facts: tensorrt-triton)."""
    compiling = situation.config.artifacts.compile
    if compiling is None or not _builds_engine(situation):
        return
    host = instance_types()[compiling.instance]
    if not host.accelerator_known:
        return
    for placement in situation.placements:
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


def neuron_compiles_on_cpu(situation: Situation) -> Iterator[Problem]:
    """No training job runs on inf1 or inf2, and the compiler needs no device (facts: neuron)."""
    compiling = situation.config.artifacts.compile
    if compiling is None or situation.config.serving.container != "neuron":
        return
    host = instance_types()[compiling.instance]
    if host.accelerator_known and host.accelerator is not None:
        yield problem(
            Code.COMPILE_INSTANCE,
            f"{host.name} has {host.accelerator_title}; Neuron compiles on a processor, and no "
            "training job runs on inf1 or inf2",
            "Use a CPU type with 32 GiB of memory or more, for example `ml.c5.4xlarge`.",
            ("artifacts", "compile", "instance"),
        )


def engine_fits_gpu(situation: Situation) -> Iterator[Problem]:
    """A TensorRT engine loads on one compute capability only (facts: tensorrt-triton)."""
    release = situation.config.artifacts.release
    if (
        not _builds_engine(situation)
        or situation.environment.artifacts == "sample"
        or release is None
    ):
        return
    for instance in situation.instances:
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


def fallback_types_share_one_target(situation: Situation) -> Iterator[Problem]:
    """A pool has one artifact: an engine for one compute capability (facts: hosting, rule 12)."""
    if not _builds_engine(situation):
        return
    first = situation.placements[0]
    wanted = first.instance.compute_capability
    if wanted is None:
        return
    for placement in situation.placements[1:]:
        capability = placement.instance.compute_capability
        if capability is not None and capability != wanted:
            yield problem(
                Code.POOL_OF_TARGETS,
                f"{placement.instance.name} has {placement.instance.accelerator_title}, and "
                f"{first.instance.name} has {first.instance.accelerator_title}: one engine does "
                "not run on both",
                f"Use types with {wanted} only, or make another deployment of this one.",
                placement.field,
            )


def _builds_engine(situation: Situation) -> bool:
    serving = situation.config.serving
    return serving.container == "tensorrt" or (
        isinstance(serving, TritonServing) and serving.backend == "tensorrt"
    )


RULES = (
    checkpoint_is_compiled,
    custom_image_compiles_itself,
    compiles_on_the_endpoints_gpu,
    neuron_compiles_on_cpu,
    engine_fits_gpu,
    fallback_types_share_one_target,
)
