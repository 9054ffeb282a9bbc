"""A deployment of Slipway's Triton image, or of AWS's with a repository of the user's own."""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Final

from slipway.config.sections.artifacts import SampleSource
from slipway.config.sections.base import Section
from slipway.config.sections.serving.triton import TritonServing
from slipway.facts.images import ImageFacts
from slipway.facts.instances import Accelerator, InstanceFacts
from slipway.facts.triton.releases import TRITON, triton_bases, triton_releases
from slipway.planning.compiling import CPU, engine_hyperparameters
from slipway.planning.deployment import Deployment
from slipway.planning.directory import Directory, DirectoryFindings, PublishedDirectory
from slipway.planning.families.triton.kserve import KServeTexts
from slipway.planning.families.triton.repository import CONFIG_NAME, check_repository
from slipway.planning.images import wanted_bases
from slipway.planning.memory_estimate import Layout
from slipway.planning.plan import ImageBase

_MEBIBYTE: Final = 1024 * 1024
# A token of text has some four bytes; four characters of four bytes each are far above that.
_TOKEN_BYTES: Final = 16
# Messages between the server and a copy take some of it as well.
_LEAST_SHARED_MEMORY_BYTES: Final = 4 * _MEBIBYTE


def image_base(base: ImageFacts) -> ImageBase | None:
    """Returns AWS's image as a base; None where Slipway's image cannot be built on it."""
    is_base = base.framework == TRITON and base.version in triton_bases()
    return ImageBase.of(base, f"triton{base.version}") if is_base else None


# A base has more than 20 GB, and each is built twice, so none is built without need.
image_bases = partial(wanted_bases, image_base)


class Triton(Deployment):
    needs_accelerator = False
    two_bytes = "fp16"
    base_of = staticmethod(image_base)
    text_names: ClassVar = frozenset({CONFIG_NAME})
    without_target = (
        "no engine can be built for it",
        "Choose another type, or build the engines yourself and set `artifacts.release`.",
    )

    @property
    def serving(self) -> TritonServing:
        return self.section(TritonServing)

    @property
    def is_own(self) -> bool:
        """Returns whether the model repository is the user's own."""
        return self.serving.repository is not None

    @property
    def computes_on_cpu(self) -> bool:
        return self.environment.is_local or self.serving.backend == "onnxruntime"

    @property
    def image_family(self) -> str | None:
        return None if self.is_own else self.container

    @property
    def aws_image_name(self) -> tuple[str, str]:
        return TRITON, self.serving.version

    def container_environment(self) -> dict[str, str]:
        """Returns the variables that Triton's front end for SageMaker reads, and the limits.

        The front end reads no others than those that begin with SAGEMAKER (facts: tensorrt-triton).
        """
        serving = self.serving
        own = {"SAGEMAKER_TRITON_LOG_VERBOSE": str(serving.log_verbose).lower()}
        if self.shared_memory_bytes is not None:
            own["SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE"] = str(self.shared_memory_bytes)
        if not self.is_own:
            own |= {
                "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": serving.default_model or self.config.name,
                "SLIPWAY_INSTANCE_COUNT": str(serving.instance_group_count),
                "SLIPWAY_MAX_BATCH_DELAY_MICROSECONDS": str(serving.max_batch_delay_microseconds),
                "SLIPWAY_MAX_BATCH_SIZE": str(serving.max_batch_size),
                "SLIPWAY_MAX_INPUT_TOKENS": str(serving.max_input_tokens),
                "SLIPWAY_MAX_NEW_TOKENS": str(serving.max_new_tokens),
                "SLIPWAY_MAX_QUEUE_LENGTH": str(serving.max_queue_length),
            }
        elif serving.default_model is not None:
            # Without it, Triton takes the one model of the repository.
            own["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] = serving.default_model
        return {**own, **serving.environment}

    @property
    def shared_memory_bytes(self) -> int | None:
        """Returns the shared memory of each copy at its start, in whole mebibytes.

        A full batch of the longest texts and answers lies in it. It grows where that is not enough.
        None leaves it to the image, because the tensors of a user's own model are not known.
        """
        serving = self.serving
        if serving.shared_memory_bytes is not None or self.is_own:
            return serving.shared_memory_bytes
        tokens = serving.max_batch_size * self._longest_tokens
        texts = -(-tokens * _TOKEN_BYTES // _MEBIBYTE) * _MEBIBYTE
        return _LEAST_SHARED_MEMORY_BYTES + texts

    @property
    def _longest_tokens(self) -> int:
        """Returns the tokens of the longest text with its answer; a rule asks for both lengths."""
        return (self.serving.max_input_tokens or 0) + (self.serving.max_new_tokens or 0)

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
    def cached_tokens(self) -> int | str:
        if self.is_encoder:
            return 0
        if self.is_own:
            return "`repository` is your own, and its batches are not read"
        return self.serving.max_batch_size * self._longest_tokens

    def other_settings(self, instance: InstanceFacts) -> Iterator[tuple[str, Deployment]]:
        for count in range(self.serving.instance_group_count - 1, 0, -1):
            way = f"lower `instance_group_count` to {count}"
            yield way, self.with_serving(instance_group_count=count)

    @property
    def needs_compiled_model(self) -> bool:
        return not self.is_own

    @property
    def builds_engine(self) -> bool:
        """Whether Slipway's model runs engines; config.pbtxt decides it for the user's."""
        return not self.is_own and self.serving.backend == "tensorrt"

    @property
    def text_protocol(self) -> KServeTexts | None:
        """Returns the protocol of Slipway's model; tensors of the user's own may have any name."""
        return None if self.serving.repository else KServeTexts()

    @property
    def compile_target(self) -> str | None:
        return CPU if self.computes_on_cpu else super().compile_target

    @property
    def settings_in_artifact(self) -> dict[str, Any]:
        return {"version": self.serving.version, **self.hyperparameters}

    @property
    def hyperparameters(self) -> dict[str, str]:
        return engine_hyperparameters(self.serving, self.compile_target)

    @property
    def compiler(self) -> str:
        return f"tensorrt {triton_releases()[self.serving.version].tensorrt_version}"

    # The user's own repository

    @property
    def published_directory(self) -> PublishedDirectory | None:
        """Returns the user's own repository; where samples are deployed, rather a sample."""
        path = self.serving.repository
        if path is None or (self.config.artifacts.sample and not self.deploys_release):
            return super().published_directory
        return PublishedDirectory(("serving", "repository"), path, "any")

    @property
    def artifact_source(self) -> Section | None:
        """Returns what the artifact is made from: the user's own repository, where there is one."""
        directory = self.published_directory
        if self.serving.repository is None or directory is None:
            return super().artifact_source
        return SampleSource(path=directory.path)

    def check_directory(self, directory: Directory) -> DirectoryFindings:
        """Returns what Triton would not load in the user's own repository, or in its sample."""
        if self.serving.repository is None:
            return DirectoryFindings()
        plain = (each for each in self.instances if each.accelerator is None)
        without = (each.name for each in plain if each.accelerator_known)
        return check_repository(
            directory,
            default_model=self.serving.default_model,
            release=self.serving.version,
            variables=self.serving.environment,
            without_gpu=next(without, None),
        )
