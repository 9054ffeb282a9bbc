"""A deployment of Triton: image, variables, memory."""

from collections.abc import Iterator
from typing import ClassVar

from slipway.config.sections.serving.triton import TritonServing
from slipway.facts.instances import Accelerator, InstanceFacts
from slipway.planning.memory import Layout
from slipway.planning.situation import Situation

TRITON = "sagemaker-tritonserver"
"""AWS's image, as facts/images.json names it."""


class Triton(Situation):
    """A deployment of AWS's Triton image."""

    needs_accelerator = False
    unpublishable: ClassVar = {("serving", "container"): "publishing for the container `triton`"}

    @property
    def serving(self) -> TritonServing:
        """Returns the config's section."""
        return self.section(TritonServing)

    @property
    def aws_image_name(self) -> tuple[str, str]:
        """Returns AWS's image of the configured release."""
        return TRITON, self.serving.version

    def container_environment(self) -> dict[str, str]:
        """Returns the variables that Triton's front end for SageMaker reads.

        It reads these, and no others (facts: tensorrt-triton).
        """
        serving = self.serving
        own = {
            # The repository that Slipway makes calls its model as the deployment is called.
            "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": serving.default_model or self.config.name,
            "SAGEMAKER_TRITON_LOG_VERBOSE": str(serving.log_verbose).lower(),
            "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": str(serving.shared_memory_bytes),
        }
        if serving.repository is not None and serving.default_model is None:
            # Triton takes the one model of the repository.
            del own["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"]
        return {**own, **serving.environment}

    def memory_layout(self, instance: InstanceFacts, accelerator: Accelerator) -> Layout | None:
        """Returns `instance_group_count` copies on each GPU.

        Each has weights and a cache of its own, as the processes of the Python backend do that own
        the decode loop.
        """
        if not accelerator.is_nvidia_gpu:
            return None
        group = self.serving.instance_group_count
        return Layout(
            copies=group * accelerator.count,
            copies_on_one=group,
            weights_share=group,
            caches_on_one=group,
        )

    @property
    def cached_tokens(self) -> int:
        """Returns the tokens of a full batch of the longest requests; 0 for an encoder."""
        serving = self.serving
        longest = serving.max_input_tokens + serving.max_new_tokens
        return 0 if self.is_encoder else serving.max_batch_size * longest

    def other_settings(self, instance: InstanceFacts) -> Iterator[tuple[str, Situation]]:
        """Yields fewer copies on each GPU."""
        for count in range(self.serving.instance_group_count - 1, 0, -1):
            yield (
                f"lower `instance_group_count` to {count}",
                self.with_serving(instance_group_count=count),
            )

    def smaller_dtype(self, accelerator: Accelerator) -> str | None:
        """Returns fp16, where the graphs are not in fp16 yet."""
        return "fp16" if self.serving.dtype == "fp32" else None

    @property
    def needs_compiled_model(self) -> bool:
        """Returns whether the graphs are engines."""
        return self.builds_engine

    @property
    def builds_engine(self) -> bool:
        """Returns whether the graphs are engines."""
        return self.serving.backend == "tensorrt"
