"""The target that a model must be compiled for, and whether a published model fits it.

An engine runs on GPUs of one compute capability, so it is built on the endpoint's own. A graph for
Neuron runs on one family of instances. The embedded AWS has no accelerator. Models published to it
are made for the CPU back end, and count in that environment alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.errors import Kind, Problem
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.planning.neuron import TARGETS, instance_family

CPU = "cpu"


def compile_target(
    config: ModelConfig, environment: Environment, instances: Sequence[InstanceFacts]
) -> str | None:
    """Returns the target that a model must be compiled for; None if no source says.

    Args:
        config: a config that breaks no rule. Its types, and the type that compiles, share one
            compute capability; or they are of one family with Neuron devices.
        environment: the embedded AWS has no accelerator.
        instances: every type the endpoint may run on.
    """
    if environment.is_local:
        return CPU
    if config.serving.container == "neuron":
        return TARGETS.get(instance_family(instances[0]))
    compiling = config.artifacts.compile
    hosts = [instance_types()[compiling.instance]] if compiling else []
    capabilities = (instance.compute_capability for instance in (*instances, *hosts))
    return next((capability for capability in capabilities if capability), None)


def wrong_target(
    config: ModelConfig,
    environment: Environment,
    instances: Sequence[InstanceFacts],
    target: str,
) -> Problem | None:
    """Returns the problem of a target that does not fit an environment, or None.

    Args:
        config: a config that breaks no rule.
        environment: the environment to deploy to.
        instances: every type the endpoint may run on.
        target: the target that the published model was compiled for.
    """
    wanted = compile_target(config, environment, instances)
    if wanted is None or wanted == target:
        return None
    has = (
        "the embedded AWS has no accelerator"
        if environment.is_local
        else f"{instances[0].name} needs {wanted}"
    )
    return Problem(
        Code.LOCKED_FOR_ANOTHER_TARGET,
        Kind.STATE,
        f"the release in the lock was compiled for {target}, and {has}",
        f"Run `slipway publish {config.name} --env {environment.name}` and commit the lock file "
        f"model_configs/{config.name}.lock.json.",
        ("artifacts", "compile"),
    )
