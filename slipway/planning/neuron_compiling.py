"""The settings of the training job that compiles for Neuron devices."""

from __future__ import annotations

from dataclasses import dataclass

from slipway.config.schema import ModelConfig
from slipway.config.sections.serving import NeuronServing
from slipway.facts.images import image, newest_neuron_version
from slipway.facts.instances import InstanceFacts
from slipway.planning.images import NEURON_BASES
from slipway.planning.neuron import place, sequence_lengths
from slipway.planning.targets import CPU


@dataclass(frozen=True)
class NeuronCompilation:
    """A compilation, without the place where it runs.

    Args:
        compiler: name of the compiler, for example `Neuron SDK 2.20.2`.
        hyperparameters: settings of the container's `compile` command.
    """

    compiler: str
    hyperparameters: dict[str, str]


def neuron_compilation(
    config: ModelConfig, instance: InstanceFacts, target: str, region: str
) -> NeuronCompilation:
    """Returns how a config's checkpoint is compiled for a target.

    On the CPU there are no cores, and products are not cast: its graphs stand in for the graphs of
    any placement and precision.

    Args:
        config: a config of the Neuron container that breaks no rule.
        instance: the endpoint's; all its types lay the model out alike.
        target: `cpu`, or a family of Neuron devices.
        region: where the compiler's image comes from.

    Raises:
        ValueError: no placement is known; the rules refuse such a config first.
    """
    serving, placement = config.serving, place(config, instance)
    if not isinstance(serving, NeuronServing) or placement is None:
        raise ValueError(f"{config.name} has no placement on the NeuronCores of {instance.name}")
    is_cpu = target == CPU
    return NeuronCompilation(
        compiler="onnx" if is_cpu else f"Neuron SDK {_sdk(serving, region)}",
        hyperparameters={
            "batch_size": str(placement.batch_size),
            "dtype": "fp32" if is_cpu else serving.dtype,
            "pipeline_cores": "1" if is_cpu else str(placement.pipeline_cores),
            "sequence_lengths": ",".join(map(str, sequence_lengths(serving))),
            "target": target,
            "task": serving.task,
        },
    )


def _sdk(serving: NeuronServing, region: str) -> str:
    """Returns the SDK of the base of the compiler's image, whose compiler it is."""
    framework = NEURON_BASES[serving.framework]
    base = image(framework, newest_neuron_version(framework), region)
    return base.neuron_sdk_version or "of an unknown version"
