"""The image table: the SageMaker SDK's own answers, AWS's host AMIs, and what we say of each."""

import functools
import importlib
import json
import re
import warnings
from importlib import resources
from types import ModuleType

import botocore.session
import pytest

from slipway.facts.images import (
    Legacy,
    UnknownFrameworkError,
    UnknownRegionError,
    UnknownVersionError,
    frameworks,
    image,
    inference_amis,
    regions,
    runs_on,
    versions,
)
from slipway.facts.neuron.drivers import (
    neuron_driver_need,
    neuron_inference_ami,
    newest_neuron_version,
)
from tools.refresh_facts import images as refresh
from tools.refresh_facts.tables import render

TEXT = resources.files("slipway.facts").joinpath("images.json").read_text("utf-8")
TABLE = json.loads(TEXT)
EVERY_VERSION = [(name, version) for name in frameworks() for version in versions(name)]
# What the SDK's look-up has no table or no row for.
NOT_IN_SDK = {
    *(pair for pair in EVERY_VERSION if pair[0].startswith("pytorch-inference-neuron")),
    ("djl-neuronx", "0.30.0"),
    ("huggingface-pytorch-inference-neuron", "1.10.2-transformers4.20.1"),
    ("huggingface-vllm-inference-neuronx", "0.11.0-optimum0.4.5"),
}
HUGGING_FACE = {
    # framework here: the SDK's table, instance type, inference tool
    "huggingface-pytorch-inference-gpu": ("huggingface", "ml.g5.xlarge", None),
    "huggingface-pytorch-inference-cpu": ("huggingface", "ml.c5.xlarge", None),
    "huggingface-pytorch-inference-neuron": ("huggingface-neuron", "ml.inf1.xlarge", "neuron"),
    "huggingface-pytorch-inference-neuronx": ("huggingface-neuronx", "ml.inf2.xlarge", "neuronx"),
}


@pytest.fixture(scope="module")
def image_uris():
    """The SDK's look-up, which reads botocore's endpoints once instead of once a call."""
    # Python warns of its sources where they were not compiled when they were installed.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module("sagemaker.core.image_uris")
        common_utils = importlib.import_module("sagemaker.core.common_utils")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            common_utils, "_botocore_resolver", functools.cache(common_utils._botocore_resolver)
        )
        yield module


def sdk_answers(image_uris: ModuleType, framework: str) -> set[str]:
    """Returns the URIs that the SDK gives for every version and region that its table has."""
    if framework in HUGGING_FACE:
        name, instance_type, tool = HUGGING_FACE[framework]
        table = image_uris.config_for_framework(name)["inference"]["versions"]
        return {
            image_uris.retrieve(
                "huggingface",
                region,
                version=version,
                base_framework_version=build,
                instance_type=instance_type,
                inference_tool=tool,
                image_scope="inference",
            )
            for version, builds in table.items()
            for build in builds
            if build.startswith("pytorch")
            for region in builds[build]["registries"]
        }
    name, instance_type = {
        "huggingface-pytorch-tgi-inference": ("huggingface-llm", "ml.g5.xlarge"),
        "huggingface-vllm-inference-neuronx": ("huggingface-vllm-neuronx", None),
        "sagemaker-tritonserver": (framework, "ml.g5.xlarge"),
    }.get(framework, (framework, None))
    config = image_uris.config_for_framework(name)
    return {
        image_uris.retrieve(
            name, region, version=version, instance_type=instance_type, image_scope="inference"
        )
        for version, row in config.get("inference", config)["versions"].items()
        for region in row["registries"]
    }


@pytest.mark.parametrize(
    "framework", [name for name in frameworks() if not name.startswith("pytorch-inference")]
)
def test_the_sdk_gives_the_same_images_in_the_same_regions(image_uris, framework):
    ours = {
        image(framework, version, region).uri
        for version in versions(framework)
        if (framework, version) not in NOT_IN_SDK
        for region in regions()
    }
    assert ours - {None} == sdk_answers(image_uris, framework)


def test_refreshing_changes_nothing_and_sources_and_versions_are_numbered():
    for each in frameworks():
        numbers = [[int(part) for part in re.findall(r"\d+", name)] for name in versions(each)]
        assert numbers == sorted(numbers), each
    assert render({"as_of": TABLE["as_of"], **refresh.table()}, levels=3) == TEXT
    assert all(re.search(r"\d", source) for source in TABLE["sources"])


@pytest.mark.parametrize(
    ("framework", "version", "region", "uri"),
    [
        (
            "pytorch-inference-neuron",
            "1.13.1-sdk2.20.2",
            "us-west-2",
            "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-inference-neuron:1.13.1-neuron-py310-sdk2.20.2-ubuntu20.04",
        ),
        ("djl-fastertransformer", "0.24.0", "us-gov-west-1", None),
        ("sagemaker-tritonserver", "25.09", "cn-north-1", None),
        ("pytorch-inference-neuronx", "2.9.0-sdk2.31.1", "eu-west-2", None),
    ],
)
def test_uris_that_the_sdk_does_not_give(framework, version, region, uri):
    facts = image(framework, version, region)
    assert facts.uri == uri
    assert (facts.account is None) == (uri is None)


@pytest.mark.parametrize(("framework", "version"), EVERY_VERSION)
def test_a_tag_says_what_the_cells_say_and_a_legacy_image_names_a_living_one(framework, version):
    facts = image(framework, version, "us-east-1")
    if cuda := re.search(r"-cu(\d\d)(\d)", facts.tag):
        assert facts.cuda_version == f"{cuda[1]}.{cuda[2]}"
    if python := re.search(r"-py3(\d+)", facts.tag):
        assert facts.python_version == f"3.{python[1]}"
    if sdk := re.search(r"sdk(\d+\.\d+\.\d+)", facts.tag):
        assert facts.neuron_sdk_version == sdk[1]
    assert (facts.neuron_sdk_version is None) or facts.accelerator.startswith("neuron")
    assert (facts.cuda_version is None) == (facts.accelerator != "gpu")
    for component in re.findall(r"(?:transformers|tgi|optimum)(\d[\d.]+\d)", facts.tag):
        assert component in facts.components.values()
    assert facts.account is not None

    if facts.legacy:
        assert len(facts.legacy.reason) > 20
        alternative = image(facts.legacy.framework, facts.legacy.version, "us-east-1")
        assert alternative.legacy is None


@pytest.mark.parametrize(
    ("framework", "version", "status"),
    [
        ("djl-fastertransformer", "0.24.0", "legacy"),
        ("djl-deepspeed", "0.27.0", "legacy"),
        ("djl-neuronx", "0.30.0", "legacy"),
        ("djl-lmi", "0.38.0", "living"),
        ("djl-tensorrtllm", "0.33.0", "living"),
        ("pytorch-inference-neuron", "1.13.1-sdk2.20.2", "legacy"),
        ("pytorch-inference-neuronx", "2.9.0-sdk2.31.1", "legacy"),
        ("sagemaker-tritonserver", "24.09", "legacy"),
        ("sagemaker-tritonserver", "26.05", "living"),
    ],
)
def test_what_lives(framework, version, status):
    assert bool(image(framework, version, "us-east-1").legacy) == (status == "legacy")


def test_images_that_are_left_lead_to_others_and_start_on_drivers_of_hosts():
    legacy = image("pytorch-inference-neuronx", "2.9.0-sdk2.31.1", "us-east-1").legacy
    assert legacy == Legacy(
        "AWS publishes none since Neuron SDK 2.32.0 (2026-08-17); in its place it names vLLM, for "
        "language models on Trainium 2 and 3 alone",
        "huggingface-pytorch-inference-neuronx",
        "2.8.0-transformers4.55.4",
    )
    model = botocore.session.Session().get_service_model("sagemaker")
    shape = model.shape_for("ProductionVariantInferenceAmiVersion")
    assert set(inference_amis()) == set(shape.enum)
    newest = inference_amis()["al2023-ami-sagemaker-inference-gpu-4-1"]
    assert (newest.nvidia_driver, newest.cuda, newest.mounts_cuda_compat) == ("580", "13.0", False)
    assert inference_amis()["al2-ami-sagemaker-inference-gpu-2"].mounts_cuda_compat
    assert inference_amis()["al2-ami-sagemaker-inference-neuron-2"].neuron_driver == "2.19"


def test_a_neuron_base_starts_on_the_driver_that_hosts_have():
    """The newest, but for runtimes that AWS says, or leaves open, to need a newer driver."""
    assert newest_neuron_version("pytorch-inference-neuronx") == "2.9.0-sdk2.29.1"
    assert newest_neuron_version("pytorch-inference-neuron") == "1.13.1-sdk2.20.2"
    assert neuron_driver_need("2.29.1") is None
    stated, left_open = neuron_driver_need("2.30.0"), neuron_driver_need("2.31.1")
    assert (stated.runtime_library, stated.oldest_driver) == ("2.32", "2.27")
    assert (left_open.runtime_library, left_open.oldest_driver) == ("2.33", None)
    assert left_open.reason.endswith("and do not say that this one has it")
    assert neuron_inference_ami().neuron_driver == "2.19"


@pytest.mark.parametrize(("framework", "version"), EVERY_VERSION)
def test_the_default_host_runs_the_image(framework, version):
    facts = image(framework, version, "us-east-1")
    if facts.accelerator == "neuronx":
        assert facts.inference_ami == "al2-ami-sagemaker-inference-neuron-2"
    elif facts.cuda_version is None or facts.cuda_version.startswith("11."):
        assert facts.inference_ami is None
    else:
        cuda = inference_amis()[facts.inference_ami].cuda
        assert cuda.partition(".")[0] == facts.cuda_version.partition(".")[0]


def test_cuda_13_needs_the_newest_host_and_has_code_for_turing_and_newer():
    facts = image("djl-lmi", "0.36.0", "us-east-1")
    assert facts.inference_ami == "al2023-ami-sagemaker-inference-gpu-4-1"
    on_13 = [
        facts
        for facts in (image(*each, "us-east-1") for each in EVERY_VERSION)
        if facts.cuda_version is not None and facts.cuda_version.startswith("13.")
    ]
    assert {facts.framework for facts in on_13} >= {"djl-lmi", "sagemaker-tritonserver"}
    assert {facts.minimum_compute_capability for facts in on_13} == {"sm75"}


def test_an_image_runs_on_a_gpu_or_not_or_no_source_says():
    assert runs_on("djl-lmi", "0.36.0", "sm75") is True
    assert runs_on("djl-lmi", "0.36.0", "sm70") is False
    assert runs_on("djl-lmi", "0.28.0", "sm70") is None
    facts = image("sagemaker-tritonserver", "23.12", "us-east-1")
    assert facts.python_version is None


def test_what_is_unknown_is_told_with_what_there_is_and_facts_cannot_be_changed():
    with pytest.raises(UnknownFrameworkError) as caught:
        image("djl-vllm", "0.36.0", "us-east-1")
    assert (caught.value.value, caught.value.known) == ("djl-vllm", frameworks())
    with pytest.raises(UnknownVersionError) as caught:
        image("djl-lmi", "0.37.0", "us-east-1")
    assert caught.value.known == versions("djl-lmi")
    with pytest.raises(UnknownRegionError) as caught:
        image("djl-lmi", "0.36.0", "us-east-9")
    assert "us-east-1" in caught.value.known
    with pytest.raises(TypeError):
        image("djl-lmi", "0.36.0", "us-east-1").components["vllm"] = "0"  # type: ignore[index]
