"""A deployment of an image of the user's own: its address, host image and memory."""

import json
import re
from functools import cached_property
from typing import Any

from slipway.config.names import LOCAL_PROGRAM_VARIABLE
from slipway.config.sections.serving.custom import CustomServing
from slipway.facts.images import ImageFacts, default_inference_ami
from slipway.facts.instances import Accelerator, InstanceFacts
from slipway.facts.neuron.drivers import neuron_inference_ami
from slipway.planning.deployment import Deployment
from slipway.planning.families.neuron.hardware import aws_neuron_image, aws_neuron_sdk
from slipway.planning.memory_estimate import Layout
from slipway.planning.plan import ImagePlan

_ECR = re.compile(r"[0-9]{12}\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/")


class Custom(Deployment):
    runs_serverless = True
    needs_accelerator = False
    runs_on_arm = True
    serves_plain_weights = True
    accelerator_noun = "accelerators have"

    @property
    def serving(self) -> CustomServing:
        return self.section(CustomServing)

    @cached_property
    def aws_neuron_image(self) -> ImageFacts | None:
        """Returns the facts of AWS's image for Neuron devices, where it is one."""
        return aws_neuron_image(self.serving.image_uri) if self.ecr_region else None

    @cached_property
    def aws_neuron_sdk(self) -> str | None:
        """Returns the Neuron SDK of AWS's image, where its tag names one."""
        return aws_neuron_sdk(self.serving.image_uri) if self.ecr_region else None

    @property
    def ecr_region(self) -> str | None:
        found = _ECR.match(self.serving.image_uri)
        return found[1] if found else None

    @property
    def given_image(self) -> ImagePlan:
        registry, _, path = self.serving.image_uri.partition("/")
        repository, separator, tag = path.partition("@")
        if not separator:
            repository, _, tag = path.partition(":")
        region, given = self.ecr_region, self.serving.private_registry
        return ImagePlan(
            registry.partition(".")[0] if region else self.environment.account,
            region or self.region,
            repository,
            tag,
            private_registry=None if region else registry,
            credentials_function_arn=given.credentials_function_arn if given else None,
        )

    @property
    def cuda_version(self) -> str | None:
        return self.serving.cuda_version

    @property
    def needed_host_image(self) -> str | None:
        """Returns the host image for the CUDA that the config gives, or for Neuron devices.

        The host that SageMaker takes by itself has Neuron driver 2.10, too old for images of 2025
        and later: https://github.com/awslabs/llm-hosting-container/pull/156 (2025-06-25). inf1 has
        no host image.
        """
        accelerators = [each.accelerator for each in self.instances if each.accelerator]
        on_neuron = (each.neuron_generation and not each.has_core_pipeline for each in accelerators)
        if accelerators and all(on_neuron):
            return neuron_inference_ami().name
        return default_inference_ami(self.cuda_version) if self.cuda_version else None

    @property
    def settings_in_artifact(self) -> dict[str, Any]:
        return {}  # weights are published as they are

    def container_environment(self) -> dict[str, str]:
        variables, local = dict(self.serving.environment), self.serving.local
        if local is not None and self.environment.is_local:
            told = {"directory": local.directory, "program": local.program}
            variables[LOCAL_PROGRAM_VARIABLE] = json.dumps(told)
        return variables

    def memory_layout(self, instance: InstanceFacts, accelerator: Accelerator) -> Layout:
        """Returns weights in `dtype`, spread over all accelerators.

        Slipway does not know how the server uses them, but it cannot use more than all.
        """
        count = accelerator.count
        return Layout(per_copy=count, weights_share=1 / count, tensor=count)

    @property
    def cached_tokens(self) -> str:
        return "the container is your own"
