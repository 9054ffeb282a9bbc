"""A deployment of the Neuron container: placement, image, memory, graphs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from slipway.config.sections.base import UnknownValueError
from slipway.config.sections.serving.neuron import NeuronServing
from slipway.facts.instances import Accelerator, InstanceFacts
from slipway.facts.neuron.drivers import newest_neuron_version
from slipway.planning.compiling import CPU
from slipway.planning.deployment import Deployment
from slipway.planning.families.neuron.hardware import (
    NEURON_BASES,
    TARGETS,
    image_base,
    instance_family,
)
from slipway.planning.families.neuron.placement import place
from slipway.planning.memory_estimate import Layout, NeuronPlacement, layout_over_cores


class Neuron(Deployment):
    needs_compiled_model = True
    two_bytes = "bf16"
    accelerator_noun = "device has"
    base_of = staticmethod(image_base)

    @property
    def serving(self) -> NeuronServing:
        return self.section(NeuronServing)

    @property
    def sequence_lengths(self) -> tuple[int, ...]:
        """Returns the tokens of each graph, ascending."""
        return self.serving.sequence_lengths or (self.serving.sequence_length,)

    def place(self, instance: InstanceFacts) -> NeuronPlacement | None:
        """Returns the layout on a type; None without Neuron devices of a known number of cores."""
        return place(self.serving, self.config.model.parameters, instance)

    @property
    def neuron_placement(self) -> NeuronPlacement | None:
        return self.place(self.instance)

    @property
    def _placed(self) -> NeuronPlacement:
        placement = self.neuron_placement
        if placement is None:
            raise UnknownValueError(
                f"{self.config.name} has no placement on the NeuronCores of {self.instance.name}"
            )
        return placement

    @property
    def image_family(self) -> str:
        return self.container

    @property
    def aws_image_name(self) -> tuple[str, str]:
        framework = NEURON_BASES[self.serving.framework]
        return framework, newest_neuron_version(framework)

    @property
    def supported_replacement(self) -> tuple[str, str]:
        """Returns the words for a base: no setting of the container leads to another."""
        return ", the image's base,", "With `container: custom` on inf2 or trn1 there is"

    def container_environment(self) -> dict[str, str]:
        return self.environment_on(self._placed)

    def environment_on(self, placement: NeuronPlacement) -> dict[str, str]:
        """Returns the variables of the container for a layout.

        The serving core reads the sequences of one forward pass as SLIPWAY_MAX_BATCH_SIZE. Any
        SAGEMAKER_TS_* would make TorchServe start a single worker.
        """
        serving = self.serving
        return {
            # Of each worker's process, which inherits it. NEURONCORE_GROUP_SIZES has no effect.
            "NEURON_RT_NUM_CORES": str(placement.cores_per_worker),
            # Unset it would be the number of vCPUs, which most types have more of than cores.
            "SAGEMAKER_MODEL_SERVER_WORKERS": str(placement.workers),
            "SLIPWAY_DTYPE": serving.dtype,
            "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": str(serving.max_batch_delay_milliseconds),
            "SLIPWAY_MAX_BATCH_SIZE": str(placement.batch_size),
            "SLIPWAY_MAX_QUEUE_LENGTH": str(serving.max_queue_length),
            "SLIPWAY_PIPELINE_CORES": str(placement.pipeline_cores),
            "SLIPWAY_REQUEST_TIMEOUT_SECONDS": str(serving.request_timeout_seconds),
            "SLIPWAY_SEQUENCE_LENGTH": str(serving.sequence_length),
            "SLIPWAY_TASK": serving.task,
            "SLIPWAY_WORKERS": str(placement.workers),
        }

    def memory_layout(self, instance: InstanceFacts, accelerator: Accelerator) -> Layout | None:
        """Returns a copy for each graph of each worker, each core with its part.

        The cores of a device share its memory, and workers fill one device before the next. Weights
        are kept in `dtype`, which the compiler casts fp32 to.
        """
        placement, graphs = self.place(instance), len(self.sequence_lengths)
        if placement is None:
            return None
        layout = layout_over_cores(accelerator, placement.pipeline_cores, placement.workers)
        return layout and replace(
            layout,
            copies=layout.copies * graphs,
            copies_on_one=layout.copies_on_one * graphs,
            weights_share=layout.weights_share * graphs,
        )

    @property
    def cached_tokens(self) -> int:
        return 0

    def other_settings(self, instance: InstanceFacts) -> Iterator[tuple[str, Deployment]]:
        placement = self.place(instance)
        if placement is None:
            return
        if placement.pipeline_cores > 1:
            most = placement.cores // (self.serving.workers or 1)
            for cores in range(placement.pipeline_cores + 1, most + 1):
                yield f"raise `pipeline_cores` to {cores}", self.with_serving(pipeline_cores=cores)
            return
        for workers in range(placement.workers - 1, 0, -1):
            yield f"lower `workers` to {workers}", self.with_serving(workers=workers)

    @property
    def compile_target(self) -> str | None:
        """Returns the family of instances that graphs are compiled for; the CPU on the laptop."""
        return CPU if self.environment.is_local else TARGETS.get(instance_family(self.instances[0]))

    @property
    def settings_in_artifact(self) -> dict[str, Any]:
        return {"framework": self.serving.framework, **self.hyperparameters}

    @property
    def hyperparameters(self) -> dict[str, str]:
        """Returns what the job is told that compiles the graphs, on a CPU.

        On the embedded AWS there are no cores, and products are not cast: its graphs stand in for
        the graphs of any placement and precision.
        """
        serving, placement, is_cpu = self.serving, self._placed, self.compile_target == CPU
        return {
            "batch_size": str(placement.batch_size),
            "dtype": "fp32" if is_cpu else serving.dtype,
            "pipeline_cores": "1" if is_cpu else str(placement.pipeline_cores),
            "sequence_lengths": ",".join(map(str, self.sequence_lengths)),
            "task": serving.task,
        }

    @property
    def compiler(self) -> str:
        sdk = (self.aws_image and self.aws_image.neuron_sdk_version) or "of an unknown version"
        return f"Neuron SDK {sdk}"
