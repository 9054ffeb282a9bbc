"""A deployment of the TensorRT container: release, host image, memory, engine."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from slipway.config.environments import Environment
from slipway.config.sections.serving.tensorrt import TensorRTServing
from slipway.facts.images import base_digest, default_inference_ami
from slipway.facts.instances import Accelerator, InstanceFacts
from slipway.facts.tensorrt.releases import TensorRTRelease, newest_release_for, tensorrt_releases
from slipway.planning.compiling import CPU, engine_hyperparameters
from slipway.planning.deployment import Deployment
from slipway.planning.memory_estimate import Layout
from slipway.planning.plan import ImageBase

# As many as the container allocates: tests/containers/tensorrt/runtimes/test_start_on_standins.py
CACHES = 3


class TensorRT(Deployment):
    needs_compiled_model = True
    runs_serverless = True
    two_bytes = "fp16"

    @property
    def serving(self) -> TensorRTServing:
        return self.section(TensorRTServing)

    @property
    def serves_encoder(self) -> bool:
        is_other = self.config.model.family == "other"
        return self.is_encoder or (is_other and self.serving.task is not None)

    @property
    def computes_on_cpu(self) -> bool:
        """Returns whether a graph runs on processors: no type has an accelerator.

        GPT-2's default, fp16, is for GPUs, so that a config that says nothing else gets a GPU. A
        serverless endpoint has nothing but processors.
        """
        asks = self.serves_encoder or self.packs_archive or self.serving.dtype != "fp16"
        return asks and all(
            each.accelerator_known and each.accelerator is None for each in self.instances
        )

    @property
    def builds_engine(self) -> bool:
        return not self.computes_on_cpu

    @property
    def compile_target(self) -> str | None:
        return CPU if self.computes_on_cpu else super().compile_target

    @cached_property
    def release(self) -> TensorRTRelease | None:
        """Returns the TensorRT of the image: as configured, or the newest for the GPUs."""
        if self.serving.tensorrt_version is not None:
            return tensorrt_releases()[self.serving.tensorrt_version]
        capabilities = (each.compute_capability for each in self.instances)
        return newest_release_for(frozenset(filter(None, capabilities)))

    @property
    def image_family(self) -> str:
        return self.container

    @property
    def image_base(self) -> ImageBase:
        if self.release is None:
            return super().image_base
        return image_base(self.release, self.environment.image_builds.registry)

    @property
    def cuda_version(self) -> str | None:
        return self.release.cuda_version if self.release else None

    @property
    def needed_host_image(self) -> str | None:
        return default_inference_ami(self.cuda_version) if self.cuda_version else None

    def container_environment(self) -> dict[str, str]:
        serving = self.serving
        if self.serves_encoder:
            own = {
                "SLIPWAY_DTYPE": serving.dtype,
                "SLIPWAY_MAX_BATCH_SIZE": str(serving.batch_size),
                "SLIPWAY_SEQUENCE_LENGTH": str(serving.sequence_length),
                "SLIPWAY_TASK": str(serving.task),
            }
        else:
            own = {
                "SLIPWAY_DEFAULT_NEW_TOKENS": str(serving.default_new_tokens),
                "SLIPWAY_MAX_BATCH_SIZE": str(serving.max_batch_size),
                "SLIPWAY_MAX_INPUT_TOKENS": str(serving.max_input_tokens),
                "SLIPWAY_MAX_NEW_TOKENS": str(serving.max_new_tokens),
            }
        own |= {
            "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": str(serving.max_batch_delay_milliseconds),
            "SLIPWAY_MAX_QUEUE_LENGTH": str(serving.max_queue_length),
            "SLIPWAY_REQUEST_TIMEOUT_SECONDS": str(serving.request_timeout_seconds),
        }
        return dict(sorted(own.items()))

    def memory_layout(self, instance: InstanceFacts, accelerator: Accelerator) -> Layout | None:
        """Returns one copy on one GPU.

        The cache, in the engine's precision, exists three times. A step reads one and writes
        another, and texts about to join the batch have the third.
        """
        return Layout(caches_on_one=CACHES) if accelerator.is_nvidia_gpu else None

    @property
    def cached_tokens(self) -> int:
        serving = self.serving
        if self.serves_encoder:
            return 0
        longest = (serving.max_input_tokens or 0) + (serving.max_new_tokens or 0)
        return serving.max_batch_size * longest

    @property
    def settings_in_artifact(self) -> dict[str, Any]:
        return {
            "tensorrt_version": self.release and self.release.version,
            **self.hyperparameters,
        }

    @property
    def hyperparameters(self) -> dict[str, str]:
        serving = self.serving
        if not self.serves_encoder:
            return engine_hyperparameters(serving, self.compile_target)
        lengths = serving.sequence_lengths or (serving.sequence_length,)
        return {
            "batch_size": str(serving.batch_size),
            "dtype": engine_hyperparameters(serving, self.compile_target)["dtype"],
            "sequence_lengths": ",".join(map(str, lengths)),
            "task": str(serving.task),
        }

    @property
    def compiler(self) -> str:
        return f"tensorrt {self.release.version}" if self.release else super().compiler


_REGISTRY = "nvcr.io"


def image_bases(
    environment: Environment, wanted: Iterable[tuple[str, str]] = ()
) -> Iterator[ImageBase]:
    """Yields the base of every release, in NVIDIA's registry or its mirror."""
    for release in tensorrt_releases().values():
        yield image_base(release, environment.image_builds.registry)


def image_base(release: TensorRTRelease, registry: str | None = None) -> ImageBase:
    """Returns the base of one release, in NVIDIA's registry or in one that mirrors it."""
    registry = registry or _REGISTRY
    image = f"nvidia/tensorrt:{release.base_image}"
    return ImageBase(f"trt{release.version}", f"{registry}/{image}", base_digest(image))
