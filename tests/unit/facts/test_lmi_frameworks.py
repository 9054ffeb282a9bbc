"""LMI's partition frameworks: their table, the guide's sections made of it, and their commands.

The sections show what each framework can do in every version, but for the flags of its command.
"""

import itertools
import string
from pathlib import Path

import pytest

import slipway
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
from slipway.facts.lmi.frameworks_table import sections
from slipway.facts.lmi.options import table_of
from slipway.facts.lmi.partition import partition_method
from slipway.facts.lmi.versions import lmi_version
from tests.unit.facts.lmi_images import VERSIONS

TABLE = table_of("lmi/lmi_frameworks.json")
GUIDE = Path(slipway.__file__).parents[1] / "docs" / "guides" / "lmi.md"
# Only Accelerate lays out whole layers; TensorRT-LLM alone has a way of running few models.
SPECIAL_CELLS = {"layers_over_devices", "without_rolling_batch", "successor"}
EVERY = [(name, version) for name in partition_frameworks() for version in framework_versions(name)]
USABLE = [
    (name, version)
    for name, version in EVERY
    if (method := partition_method(name, version)) is not None and method.refused is None
]
PLACES = {
    "settings", "weights", "output", "tensor_parallel_degree", "pipeline_parallel_degree",
}  # fmt: skip


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_every_image_is_one_of_awss_and_has_the_engine_of_the_command(name, version):
    framework = partition_framework(name, version)
    ahead = framework.ahead_of_time
    for image in framework.images:
        assert version in images.versions(image)
        if ahead is not None and ahead.engine is not None:
            assert ahead.engine in lmi_version(image, version).engines
    assert (partition_method(name, version) is None) == (ahead is None)


PARTITION, BUILD = ("partition",), ("python", "/opt/djl/partition/trt_llm_partition.py")
FLAGS = (
    "--model-dir",
    "--model-id",
    "--engine",
    "--save-mp-checkpoint-path",
    "--tensor-parallel-degree",
)
NEWER_FLAGS = (*FLAGS, "--skip-copy", "--quantization", "--pipeline-parallel-degree")
BUILD_FLAGS = ("--properties_dir", "--trt_llm_model_repo", "--tensor_parallel_degree")
NEWER_BUILD_FLAGS = (*BUILD_FLAGS, "--pipeline_parallel_degree", "--model_path")


@pytest.mark.parametrize(
    ("name", "version", "command", "engine", "flags"),
    [
        ("deepspeed", "0.21.0", PARTITION, "DeepSpeed", ("--model-dir",)),
        ("deepspeed", "0.23.0", PARTITION, "DeepSpeed", FLAGS),
        ("deepspeed", "0.27.0", PARTITION, "DeepSpeed", (*FLAGS, "--skip-copy")),
        ("fastertransformer", "0.22.1", PARTITION, "FasterTransformer", ("--model-dir",)),
        ("fastertransformer", "0.24.0", PARTITION, "FasterTransformer", FLAGS),
        ("transformers-neuronx", "0.26.0", PARTITION, "Python", (*FLAGS, "--skip-copy")),
        ("transformers-neuronx", "0.29.0", PARTITION, "Python", NEWER_FLAGS),
        ("tensorrt-llm", "0.28.0", BUILD, None, (*BUILD_FLAGS, "--model_path")),
        ("tensorrt-llm", "0.33.0", BUILD, None, NEWER_BUILD_FLAGS),
    ],
)
def test_what_partitions_ahead(name, version, command, engine, flags):
    found = partition_framework(name, version).ahead_of_time
    assert (found.command, found.engine, found.flags) == (command, engine, flags)
    assert "serving/docker/partition/" in found.source


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


def test_what_auto_comes_to_and_what_loads_without_a_rolling_batch():
    server = lmi_version("djl-deepspeed", "0.25.0")
    assert rolling_batches_of(server, "Python", "auto") == ("scheduler",)
    assert rolling_batches_of(server, "Python", "vllm") == ("vllm",)
    # Before 0.23 there is none to choose from.
    assert rolling_batches_of(lmi_version("djl-deepspeed", "0.22.1"), "Python", "auto") == ("auto",)
    earlier, later = (partition_framework("tensorrt-llm", each) for each in ("0.30.0", "0.32.0"))
    assert earlier.model_types_without_rolling_batch == ("t5",)
    assert later.model_types_without_rolling_batch is None


def test_what_is_unknown_is_told_with_what_there_is():
    with pytest.raises(UnknownFrameworkError) as caught:
        partition_framework("triton", "0.36.0")
    assert caught.value.known == partition_frameworks()
    with pytest.raises(UnknownVersionError) as caught:
        partition_framework("fastertransformer", "0.25.0")
    assert caught.value.known == ("0.21.0", "0.22.1", "0.23.0", "0.24.0")
    assert partition_method("no-such", "0.36.0") is None


@pytest.mark.parametrize(("name", "version"), USABLE)
def test_the_arguments_are_the_command_and_flags_it_has(name, version):
    method = partition_method(name, version)
    ahead = partition_framework(name, version).ahead_of_time
    assert method.arguments[: len(ahead.command)] == ahead.command
    rest = method.arguments[len(ahead.command) :]
    assert set(rest[::2]) <= set(ahead.flags)
    assert method.engine == ahead.engine
    named = {field for argument in rest for _, field, _, _ in string.Formatter().parse(argument)}
    assert named - {None} <= PLACES


def test_which_versions_can_and_which_models_load_again():
    usable = {name: [version for each, version in USABLE if each == name] for name, _ in USABLE}
    assert {name: (found[0], found[-1]) for name, found in usable.items()} == {
        "fastertransformer": ("0.22.1", "0.24.0"),
        "deepspeed": ("0.22.1", "0.27.0"),
        "tensorrt-llm": ("0.25.0", "0.33.0"),
    }
    before, after = (partition_method("deepspeed", version) for version in ("0.24.0", "0.25.0"))
    assert set(after.model_types) - set(before.model_types) == {"llama"}
    # The modules lie in it, and know no NeuronCore.
    assert "huggingface" in lmi_version("djl-neuronx", "0.27.0").handlers
    for name in partition_frameworks():
        named = {image for found in framework_images(name).values() for image in found}
        assert ("djl-neuronx" in named) == (name == "transformers-neuronx")


def rows():
    for name, framework in TABLE["frameworks"].items():
        for cell, found in framework.items():
            if isinstance(found, list):
                yield from ((name, cell, row) for row in found)


def covered(span):
    first, _, last = span.partition("..")
    end = VERSIONS.index(last) if last else len(VERSIONS) - 1
    return VERSIONS[VERSIONS.index(first) : end + 1]


def test_every_row_has_a_source_a_span_and_a_value_of_a_fixed_set():
    for name, cell, row in rows():
        assert len(row["source"]) > 10, (name, cell)
        assert covered(row["in"]), (name, cell)
    for key in ("auto_rolling_batch", "rolling_batch_streams"):
        assert all(row["source"] and covered(row["in"]) for row in TABLE[key])
    for name, cell, row in rows():
        if cell == "layers_over_devices":
            assert row["value"] in ("degree", "device_map", "no")
        elif cell == "successor":
            assert row["value"] in TABLE["frameworks"]
        elif cell not in ("ahead_of_time", "without_rolling_batch"):
            assert row["value"] in ("yes", "no", "unknown"), (name, cell)


@pytest.mark.parametrize("name", partition_frameworks())
def test_every_version_has_one_row_in_every_cell(name):
    for cell, found in TABLE["frameworks"][name].items():
        if not isinstance(found, list):
            continue
        spans = list(itertools.chain(*(covered(row["in"]) for row in found)))
        assert len(spans) == len(set(spans)), cell
        if cell not in SPECIAL_CELLS:
            assert set(framework_versions(name)) <= set(spans), cell


def test_the_guide_has_exactly_these_sections():
    _, _, after = GUIDE.read_text("utf-8").partition("## The frameworks, version by version\n")
    section, _, _ = after.partition("\n## ")
    begin = section.index("### ")
    assert section[begin:].startswith(f"{sections()}\n### Where the tables come from\n"), (
        "put what python -m slipway.facts.lmi.frameworks_table prints into docs/guides/lmi.md"
    )
