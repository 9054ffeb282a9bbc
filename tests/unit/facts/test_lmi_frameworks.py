"""LMI's partition frameworks: what each can do in single versions, and which one runs a model."""

import pytest

from slipway.facts import images
from slipway.facts.images import UnknownFrameworkError, UnknownVersionError
from slipway.facts.lmi.frameworks import (
    framework_images,
    framework_versions,
    partition_framework,
    partition_frameworks,
    possible_frameworks,
    rolling_batches_of,
)
from slipway.facts.lmi.versions import lmi_version
from tests.unit.facts.lmi_images import NEWEST, VERSIONS

EVERY = [(name, version) for name in partition_frameworks() for version in framework_versions(name)]


# Versions and images


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("fastertransformer", "0.21.0", "0.24.0"),
        ("deepspeed", "0.19.0", "0.27.0"),
        ("accelerate", "0.19.0", NEWEST),
        ("lmi-dist", "0.23.0", "0.32.0"),
        ("vllm", "0.23.0", NEWEST),
        ("tensorrt-llm", "0.25.0", "0.33.0"),
        ("transformers-neuronx", "0.22.1", "0.30.0"),
    ],
)
def test_versions(name, first, last):
    found = framework_versions(name)
    assert (found[0], found[-1]) == (first, last)
    assert list(found) == sorted(found, key=VERSIONS.index)
    assert len(partition_frameworks()) == 7


def test_images():
    assert partition_framework("vllm", "0.27.0").images == ("djl-deepspeed",)
    assert partition_framework("vllm", "0.28.0").images == ("djl-lmi",)
    assert partition_framework("accelerate", "0.24.0").images == (
        "djl-deepspeed",
        "djl-fastertransformer",
    )


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_every_image_of_a_framework_is_one_of_awss(name, version):
    for image in partition_framework(name, version).images:
        assert version in images.versions(image)


def test_a_gpus_framework_is_not_taken_from_the_neuron_image():
    # The modules lie in it, and know no NeuronCore.
    assert "huggingface" in lmi_version("djl-neuronx", "0.27.0").handlers
    for name in partition_frameworks():
        named = {image for found in framework_images(name).values() for image in found}
        assert ("djl-neuronx" in named) == (name == "transformers-neuronx")


# What each can do


@pytest.mark.parametrize(
    ("name", "version", "tensor", "pipeline", "layers"),
    [
        ("fastertransformer", "0.24.0", "yes", "unknown", "no"),
        ("deepspeed", "0.19.0", "yes", "no", "no"),
        ("accelerate", "0.19.0", "no", "no", "no"),
        ("accelerate", "0.20.0", "no", "no", "degree"),
        ("accelerate", "0.29.0", "no", "no", "degree"),
        ("accelerate", "0.30.0", "no", "no", "device_map"),
        ("accelerate", "0.38.0", "no", "no", "device_map"),
        ("lmi-dist", "0.29.0", "yes", "no", "no"),
        ("lmi-dist", "0.30.0", "yes", "yes", "no"),
        ("vllm", "0.29.0", "yes", "no", "no"),
        ("vllm", "0.36.0", "yes", "no", "no"),
        ("tensorrt-llm", "0.29.0", "yes", "no", "no"),
        ("tensorrt-llm", "0.30.0", "yes", "unknown", "no"),
        ("transformers-neuronx", "0.30.0", "yes", "no", "no"),
    ],
)
def test_how_a_model_is_split(name, version, tensor, pipeline, layers):
    framework = partition_framework(name, version)
    assert framework.tensor_parallel.value == tensor
    assert framework.pipeline_parallel.value == pipeline
    assert framework.layers_over_devices.value == layers


@pytest.mark.parametrize(
    ("name", "version", "plain", "rolling"),
    [
        ("fastertransformer", "0.22.1", "no", "no"),
        ("fastertransformer", "0.23.0", "enable_streaming", "no"),
        ("fastertransformer", "0.24.0", "enable_streaming", "no"),
        ("deepspeed", "0.21.0", "no", "no"),
        ("deepspeed", "0.22.1", "enable_streaming", "no"),
        ("deepspeed", "0.26.0", "enable_streaming", "output_formatter"),
        ("deepspeed", "0.27.0", "enable_streaming", "stream"),
        ("accelerate", "0.32.0", "enable_streaming", "stream"),
        ("accelerate", "0.33.0", "enable_streaming", "no"),
        ("lmi-dist", "0.26.0", "no", "output_formatter"),
        ("vllm", "0.36.0", "no", "stream"),
        ("tensorrt-llm", "0.33.0", "no", "stream"),
        ("transformers-neuronx", "0.23.0", "enable_streaming", "no"),
    ],
)
def test_how_tokens_are_streamed(name, version, plain, rolling):
    framework = partition_framework(name, version)
    assert (framework.streaming.value, framework.rolling_streaming.value) == (plain, rolling)
    if (name, plain) == ("fastertransformer", "enable_streaming"):
        assert framework.streaming.note == "with the engine Python"


@pytest.mark.parametrize(
    ("name", "version", "batches", "always"),
    [
        ("fastertransformer", "0.24.0", (), False),
        ("deepspeed", "0.24.0", (), False),
        ("deepspeed", "0.25.0", ("deepspeed",), False),
        ("accelerate", "0.22.1", (), False),
        ("accelerate", "0.23.0", ("scheduler",), False),
        ("accelerate", "0.33.0", (), False),
        ("lmi-dist", "0.32.0", ("lmi-dist",), False),
        ("vllm", "0.32.0", ("vllm",), False),
        ("vllm", "0.36.0", ("vllm",), True),
        ("tensorrt-llm", "0.25.0", ("trtllm",), False),
        ("transformers-neuronx", "0.24.0", ("auto",), False),
    ],
)
def test_continuous_batching(name, version, batches, always):
    framework = partition_framework(name, version)
    assert (framework.rolling_batches, framework.rolls_always) == (batches, always)


@pytest.mark.parametrize(
    ("name", "since"),
    [
        ("fastertransformer", "0.23.0"),
        ("deepspeed", "0.23.0"),
        ("accelerate", "0.23.0"),
        ("transformers-neuronx", "0.24.0"),
        ("tensorrt-llm", "0.27.0"),
    ],
)
def test_since_when_handlers_answer_batches_of_the_server(name, since):
    known = framework_versions(name)
    answering = [
        version
        for version in known
        if partition_framework(name, version).server_batches.value == "yes"
    ]
    assert answering[0] == since


def test_tensorrt_llm_answers_batches_of_t5_alone_and_for_a_while():
    framework = partition_framework("tensorrt-llm", "0.30.0")
    assert framework.server_batches.note == "T5 alone"
    assert framework.model_types_without_rolling_batch == ("t5",)
    later = partition_framework("tensorrt-llm", "0.32.0")
    assert later.server_batches.value == "no"
    assert later.model_types_without_rolling_batch is None


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_hardware(name, version):
    framework = partition_framework(name, version)
    neuron = name == "transformers-neuronx"
    assert framework.gpu.value == ("no" if neuron else "yes")
    assert (framework.neuron.value == "yes") == neuron
    assert (framework.cpu.value == "yes") == (name == "accelerate")


@pytest.mark.parametrize(
    ("name", "version", "status"),
    [
        ("fastertransformer", "0.24.0", "legacy: djl-lmi 0.38.0"),
        ("deepspeed", "0.27.0", "legacy: djl-lmi 0.38.0"),
        ("lmi-dist", "0.32.0", "removed in 0.33.0: vLLM"),
        ("accelerate", "0.36.0", "in maintenance mode: vLLM"),
        ("vllm", "0.36.0", None),
        ("tensorrt-llm", "0.33.0", None),
        (
            "transformers-neuronx",
            "0.29.0",
            "legacy: huggingface-vllm-inference-neuronx 0.11.0-optimum0.4.5",
        ),
    ],
)
def test_what_is_legacy(name, version, status):
    assert partition_framework(name, version).legacy == status


# Ahead of time

FLAGS = (
    "--model-dir",
    "--model-id",
    "--engine",
    "--save-mp-checkpoint-path",
    "--tensor-parallel-degree",
)
BUILD_FLAGS = ("--properties_dir", "--trt_llm_model_repo", "--tensor_parallel_degree")


@pytest.mark.parametrize(
    ("name", "version", "command", "engine", "flags"),
    [
        ("deepspeed", "0.21.0", ("partition",), "DeepSpeed", ("--model-dir",)),
        ("deepspeed", "0.23.0", ("partition",), "DeepSpeed", FLAGS),
        ("deepspeed", "0.27.0", ("partition",), "DeepSpeed", (*FLAGS, "--skip-copy")),
        ("fastertransformer", "0.22.1", ("partition",), "FasterTransformer", ("--model-dir",)),
        ("fastertransformer", "0.24.0", ("partition",), "FasterTransformer", FLAGS),
        ("transformers-neuronx", "0.26.0", ("partition",), "Python", (*FLAGS, "--skip-copy")),
        (
            "transformers-neuronx",
            "0.29.0",
            ("partition",),
            "Python",
            (*FLAGS, "--skip-copy", "--quantization", "--pipeline-parallel-degree"),
        ),
        (
            "tensorrt-llm",
            "0.28.0",
            ("python", "/opt/djl/partition/trt_llm_partition.py"),
            None,
            (*BUILD_FLAGS, "--model_path"),
        ),
        (
            "tensorrt-llm",
            "0.33.0",
            ("python", "/opt/djl/partition/trt_llm_partition.py"),
            None,
            (*BUILD_FLAGS, "--pipeline_parallel_degree", "--model_path"),
        ),
    ],
)
def test_what_partitions_ahead(name, version, command, engine, flags):
    found = partition_framework(name, version).ahead_of_time
    assert (found.command, found.engine, found.flags) == (command, engine, flags)
    assert "serving/docker/partition/" in found.source


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("deepspeed", "0.20.0"),
        ("fastertransformer", "0.21.0"),
        ("accelerate", "0.27.0"),
        ("lmi-dist", "0.32.0"),
        ("vllm", "0.38.0"),
        ("transformers-neuronx", "0.25.0"),
    ],
)
def test_what_is_split_only_when_it_is_loaded(name, version):
    assert partition_framework(name, version).ahead_of_time is None


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_a_command_names_an_engine_that_the_image_has(name, version):
    found = partition_framework(name, version).ahead_of_time
    if found is not None and found.engine is not None:
        for image in partition_framework(name, version).images:
            assert found.engine in lmi_version(image, version).engines


# Which framework it is


@pytest.mark.parametrize(
    ("image", "version", "handler", "engine", "rolling_batch", "names"),
    [
        ("djl-fastertransformer", "0.24.0", "fastertransformer", "Python", "disable",
         ("fastertransformer",)),
        ("djl-deepspeed", "0.27.0", "deepspeed", "DeepSpeed", "deepspeed", ("deepspeed",)),
        ("djl-deepspeed", "0.26.0", "huggingface", "Python", "auto", ("accelerate",)),
        ("djl-deepspeed", "0.26.0", "huggingface", "MPI", "auto", ("accelerate", "lmi-dist")),
        ("djl-deepspeed", "0.27.0", "huggingface", "Python", "vllm", ("vllm",)),
        ("djl-deepspeed", "0.21.0", "huggingface", "Python", "disable", ("accelerate",)),
        ("djl-lmi", "0.32.0", "huggingface", "Python", "auto",
         ("accelerate", "lmi-dist", "vllm")),
        ("djl-lmi", "0.34.0", "huggingface", "Python", "auto", ("accelerate", "vllm")),
        ("djl-lmi", "0.36.0", "huggingface", "Python", "auto", ("accelerate",)),
        ("djl-lmi", "0.36.0", "huggingface", "Python", "disable", ("accelerate",)),
        ("djl-lmi", "0.36.0", "vllm_async", "Python", "auto", ("vllm",)),
        ("djl-tensorrtllm", "0.33.0", "trtllm_async", "Python", "disable", ("tensorrt-llm",)),
        ("djl-neuronx", "0.28.0", "transformers_neuronx", "Python", "vllm",
         ("transformers-neuronx",)),
        ("djl-deepspeed", "0.27.0", "custom", "DeepSpeed", "disable", ()),
        ("djl-deepspeed", "0.27.0", "stable_diffusion", "Python", "disable", ()),
        ("djl-lmi", "0.36.0", "huggingface", "Python", "no-such", ()),
    ],
)  # fmt: skip
def test_what_runs_a_model(image, version, handler, engine, rolling_batch, names):
    server = lmi_version(image, version)
    assert possible_frameworks(server, handler, engine, rolling_batch) == names


def test_what_auto_comes_to():
    server = lmi_version("djl-deepspeed", "0.25.0")
    assert rolling_batches_of(server, "Python", "auto") == ("scheduler",)
    assert rolling_batches_of(server, "Python", "vllm") == ("vllm",)
    # Before 0.23 there is none to choose from.
    assert rolling_batches_of(lmi_version("djl-deepspeed", "0.22.1"), "Python", "auto") == ("auto",)


# Reading


def test_what_is_unknown_is_told_with_what_there_is():
    with pytest.raises(UnknownFrameworkError) as caught:
        partition_framework("triton", "0.36.0")
    assert caught.value.known == partition_frameworks()
    with pytest.raises(UnknownVersionError) as caught:
        partition_framework("fastertransformer", "0.25.0")
    assert caught.value.known == ("0.21.0", "0.22.1", "0.23.0", "0.24.0")
