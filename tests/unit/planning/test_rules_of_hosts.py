"""Processors, host images, alarms of GPUs, sources of a release: refusals, and what passes."""

from typing import Any

import pytest

from slipway.planning.rules import hardware, serving
from tests.support.projects import PRODUCTION
from tests.unit.planning.rule_findings import findings, messages, on, only, refused_fields

CUSTOM = {
    "container": "custom",
    "image_uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2",
}


def custom(**more: Any) -> dict[str, Any]:
    return {"serving": None} | {"serving": CUSTOM | more}


class TestHosts:
    def test_our_images_are_for_x86(self):
        rule = hardware.image_runs_on_processor
        assert refused_fields(rule, endpoint=on("ml.c7g.xlarge")) == ["endpoint.instances[0]"]
        assert findings(rule, endpoint=on("ml.c7i.xlarge")) == []
        # An image of one's own may be for either.
        assert findings(rule, endpoint=on("ml.c7g.xlarge"), **custom()) == []

    @pytest.mark.parametrize(
        ("instance", "ami", "reason"),
        [
            ("ml.inf1.xlarge", "al2-ami-sagemaker-inference-neuron-2",
             "SageMaker takes no host image for inf1"),
            ("ml.inf2.xlarge", "al2-ami-sagemaker-inference-gpu-3-1", "it has AWS Inferentia2"),
            ("ml.g5.xlarge", "al2-ami-sagemaker-inference-neuron-2", "it has NVIDIA A10G"),
            ("ml.c5.xlarge", "al2-ami-sagemaker-inference-gpu-3-1", "the type has no accelerator"),
            ("ml.g5.xlarge", "al2-ami-sagemaker-inference-gpu-3-1", None),
            ("ml.inf2.xlarge", "al2-ami-sagemaker-inference-neuron-2", None),
        ],
    )  # fmt: skip
    def test_a_host_image_has_one_kind_of_driver(self, instance, ami, reason):
        found = messages(
            hardware.ami_fits_accelerator, endpoint=on(instance) | {"inference_ami_version": ami}
        )
        expected = f"{ami} does not fit {instance}: {reason}"
        assert found == ([("endpoint.inference_ami_version", expected)] if reason else [])

    def test_a_pool_has_one_host_image(self):
        rule = hardware.pool_has_one_host_image
        mixed = {"instances": ["ml.g4dn.xlarge", "ml.c5.xlarge"]}
        assert only(findings(rule, endpoint=mixed, **custom(cuda_version="12.4"))) == (
            "endpoint.instances[1]",
            "ml.c5.xlarge has no GPU, and ml.g4dn.xlarge of the same pool needs the host image "
            "al2-ami-sagemaker-inference-gpu-3-1",
            "Name only types with the same kind of accelerator, or give each kind a variant.",
        )
        # Without a host image there is nothing to agree on.
        assert findings(rule, endpoint=mixed, **custom(cuda_version="11.8")) == []
        assert findings(rule, endpoint=mixed, **custom()) == []
        apart = [
            {"name": "a", "weight": 1, "instances": ["ml.g4dn.xlarge"]},
            {"name": "b", "weight": 1, "instances": ["ml.c5.xlarge"]},
        ]
        assert findings(rule, endpoint={"variants": apart}, **custom(cuda_version="12.4")) == []

    def test_cuda_13_needs_the_newest_driver(self):
        rule = hardware.ami_fits_cuda
        older = {"inference_ami_version": "al2-ami-sagemaker-inference-gpu-3-1"}
        assert only(findings(rule, endpoint=older, **custom(cuda_version="13.0"))) == (
            "endpoint.inference_ami_version",
            "the image has CUDA 13.0, whose driver al2-ami-sagemaker-inference-gpu-3-1 does "
            "not have",
            "Use `al2023-ami-sagemaker-inference-gpu-4-1`, or leave it out: it is then chosen "
            "by the image's CUDA.",
        )
        assert findings(rule, endpoint=older, **custom(cuda_version="12.4")) == []
        assert findings(rule, **custom(cuda_version="13.0")) == []

    def test_an_alarm_on_gpus_needs_one(self):
        alarms = {"gpu_memory_utilization_percent": 90}
        rule = hardware.gpu_alarm_needs_gpu
        assert only(findings(rule, endpoint=on("ml.c5.xlarge"), alarms=alarms)) == (
            "alarms.gpu_memory_utilization_percent",
            "ml.c5.xlarge has no GPU, and so no metric of its memory",
            "Remove `gpu_memory_utilization_percent`.",
        )
        assert findings(rule, alarms=alarms) == []

    def test_an_alarm_on_gpus_needs_types_with_as_many(self):
        alarms = {"gpu_memory_utilization_percent": 90}
        rule = hardware.gpu_alarm_has_one_threshold
        pool = {"instances": ["ml.g5.12xlarge", "ml.g5.24xlarge", "ml.g5.xlarge"]}
        assert only(findings(rule, endpoint=pool, alarms=alarms)) == (
            "endpoint.instances[2]",
            "ml.g5.xlarge has 1 GPU and ml.g5.12xlarge has 4 GPUs; the metric "
            "`GPUMemoryUtilization` adds up over the GPUs of an instance, so no one threshold "
            "is right for both",
            "Use types with the same number of GPUs, or remove "
            "`alarms.gpu_memory_utilization_percent`.",
        )
        assert findings(rule, endpoint=pool) == []
        # Each variant has an alarm of its own.
        own = [
            {"name": "a", "weight": 1, "instances": ["ml.g5.12xlarge", "ml.g5.24xlarge"]},
            {"name": "b", "weight": 1, "instances": ["ml.g5.xlarge"]},
        ]
        assert findings(rule, endpoint={"variants": own}, alarms=alarms) == []


HUB = {"source": "hub", "repository": "gpt2", "revision": "a" * 40}


class TestArtifacts:
    def test_a_release_has_one_source(self):
        rule = serving.release_has_one_source
        assert only(findings(rule, artifacts={"weights": HUB})) == (
            "artifacts.weights",
            "there are two sources of the release: `release` and `weights`",
            "Keep one of them.",
        )
        one = {"release": None, "weights": HUB}
        assert findings(rule, artifacts=one) == []
        assert findings(serving.artifact_exists, PRODUCTION, artifacts=one) == []

    def test_compiling_needs_weights(self):
        compiling = {"compile": {"instance": "ml.g4dn.xlarge"}}
        assert messages(serving.release_has_one_source, artifacts=compiling) == [
            ("artifacts.compile", "there are no weights to compile")
        ]
