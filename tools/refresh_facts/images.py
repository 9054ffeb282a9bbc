"""Writes slipway/facts/images.json: the images that AWS provides, and what is in them.

    python -m tools.refresh_facts.images

Tags and registry accounts come from the SageMaker SDK's tables (the package sagemaker-core), domain
suffixes and host AMIs from botocore. What neither of them says is in dated tables here: Neuron
images that the SDK's look-up cannot return, what is inside an image, and what AWS still lists. Look
there, and at the sources that the table names, when a package has been updated.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import botocore
import botocore.loaders
import botocore.session
from botocore.model import StringShape, StructureShape

from tools.refresh_facts.tables import (
    FACTS,
    SourceError,
    package_file,
    package_version,
    render,
    run,
)

PATH = FACTS / "images.json"
SDK_TABLES = "sagemaker/core/image_uri_config"

# aws/deep-learning-containers at e0ecedea6a (2026-08-21): docs/src/data and, in its history,
# available_images.md, whose last version also gives the regions.
LISTED_AS_OF = "2026-08-21"
NEURON_REGIONS = (
    "ap-east-2 ap-northeast-1 ap-south-1 ap-southeast-1 ap-southeast-2 eu-central-1 eu-west-1 "
    "eu-west-3 sa-east-1 us-east-1 us-east-2 us-west-2"
)
# Versions that the list of 2026-08-21 still has; newer ones live too.
OLDEST_LISTED = {
    "djl-lmi": "0.32.0",
    "djl-tensorrtllm": "0.32.0",
    "pytorch-inference-neuronx": "2.6.0-sdk2.23.0",
    "huggingface-pytorch-inference-neuronx": "2.1.2-transformers4.43.2",
    "huggingface-vllm-inference-neuronx": "0.11.0-optimum0.4.5",
    "huggingface-pytorch-inference-gpu": "2.6.0-transformers5.5.3",
    "huggingface-pytorch-inference-cpu": "2.6.0-transformers5.5.3",
    # 26.03 is the first without a path traversal in its SageMaker front end.
    "sagemaker-tritonserver": "26.03",
}
# framework: (why all of its versions are legacy, the framework to go to)
GONE = {
    "djl-fastertransformer": (
        "DJL Serving has no FasterTransformer since 0.25.0, and no image of it was made since",
        "djl-lmi",
    ),
    "djl-deepspeed": (
        "DJL Serving has no DeepSpeed since 0.28.0, and no image of it was made since",
        "djl-lmi",
    ),
    "djl-neuronx": (
        "DJL Serving removed its Neuron code in November 2025; 0.30.0 had the last Neuron image",
        "huggingface-vllm-inference-neuronx",
    ),
    "pytorch-inference-neuron": (
        "Inferentia 1 gets no new tool chain: Neuron SDK 2.20.2 was the last with one",
        "pytorch-inference-neuronx",
    ),
    "huggingface-pytorch-inference-neuron": (
        "Inferentia 1 gets no new tool chain: Neuron SDK 2.20.2 was the last with one",
        "huggingface-pytorch-inference-neuronx",
    ),
    "huggingface-pytorch-tgi-inference": (
        f"AWS's list of images has no Text Generation Inference any more ({LISTED_AS_OF})",
        "djl-lmi",
    ),
}
SUPERSEDED = f"AWS's list of images has newer versions only ({LISTED_AS_OF})"
UNSAFE_FRONT_END = "its SageMaker front end has a path traversal, fixed in 26.03"

# What DJL images hold besides what their tag says: the Dockerfile of djl-serving's branch
# VERSION-dlc (requirements files from 0.32.0); 0.38.0: djl-serving pull request 3075.
FULL_NAMES = {"tnx": "transformers-neuronx", "lmi_dist": "lmi-dist", "hf": "transformers"}
DJL_CONTENTS = """
djl-fastertransformer 0.21.0 python=3.9 torch=1.13.1 hf=4.25.1
djl-fastertransformer 0.22.1 python=3.9 torch=1.13.1 hf=4.27.3
djl-fastertransformer 0.23.0 python=3.9 torch=1.13.1 hf=4.30.1
djl-fastertransformer 0.24.0 python=3.9 torch=1.13.1 hf=4.34.0
djl-deepspeed 0.19.0 python=3.8 torch=1.12.1 hf=4.22.1
djl-deepspeed 0.20.0 python=3.8 torch=1.12.1 hf=4.23.1
djl-deepspeed 0.21.0 python=3.8 torch=1.13.1 hf=4.26.0
djl-deepspeed 0.22.1 python=3.9 torch=2.0.1 hf=4.29.2
djl-deepspeed 0.23.0 python=3.9 torch=2.0.1 hf=4.30.2 vllm=0.1.1 lmi_dist=0.9.4.pre
djl-deepspeed 0.24.0 python=3.9 torch=2.0.1 hf=4.34.0 vllm=0.2.0 lmi_dist=0.9.4
djl-deepspeed 0.25.0 python=3.9 torch=2.0.1 hf=4.34.0 vllm=0.2.1.post1 lmi_dist=0.9.4.post0
djl-deepspeed 0.26.0 python=3.10 torch=2.1.2 hf=4.36.2 vllm=0.2.7 lmi_dist=8.0.0
djl-deepspeed 0.27.0 python=3.10 torch=2.1.2 hf=4.39.0 vllm=0.3.3 lmi_dist=9.0.0
djl-neuronx 0.22.1 python=3.8 torch=1.13.1 hf=4.28.1 tnx=0.3.32
djl-neuronx 0.23.0 python=3.8 torch=1.13.1 hf=4.30.1 tnx=0.5.58
djl-neuronx 0.24.0 python=3.8 torch=1.13.1 hf=4.34.0 tnx=0.8.268
djl-neuronx 0.25.0 python=3.8 torch=1.13.1 hf=4.34.0 tnx=0.8.268
djl-neuronx 0.26.0 python=3.9 torch=1.13.1 hf=4.35.0 tnx=0.9.474
djl-neuronx 0.27.0 python=3.9 torch=2.1.2 hf=4.36.2 tnx=0.10.0.360
djl-neuronx 0.28.0 python=3.10 torch=2.1.2 hf=4.36.2 tnx=0.10.0.360 vllm=0.4.2
djl-neuronx 0.29.0 python=3.10 torch=2.1.2 hf=4.43.1 tnx=0.11.351 vllm=0.5.0
djl-tensorrtllm 0.25.0 python=3.10 torch=2.1.0 hf=4.34.0
djl-tensorrtllm 0.26.0 python=3.10 torch=2.1.0 hf=4.36.2
djl-tensorrtllm 0.27.0 python=3.10 torch=2.1.2 hf=4.38.1
djl-tensorrtllm 0.28.0 python=3.10 torch=2.2.1 hf=4.40.0
djl-tensorrtllm 0.29.0 python=3.10 torch=2.3.1 hf=4.42.4
djl-tensorrtllm 0.30.0 python=3.10 torch=2.4.0 hf=4.44.2
djl-tensorrtllm 0.32.0 python=3.10 torch=2.4.0 hf=4.44.2
djl-tensorrtllm 0.33.0 python=3.12
djl-lmi 0.28.0 python=3.10 torch=2.3.0 hf=4.41.1 vllm=0.4.2 lmi_dist=10.0.0
djl-lmi 0.29.0 python=3.10 torch=2.3.1 hf=4.43.2 vllm=0.5.3.post1 lmi_dist=11.0.0
djl-lmi 0.30.0 python=3.10 torch=2.4.0 hf=4.45.2 vllm=0.6.2 lmi_dist=12.0.0
djl-lmi 0.31.0 python=3.11 torch=2.5.1 hf=4.45.2 vllm=0.6.3.post1 lmi_dist=13.0.0
djl-lmi 0.32.0 python=3.11 torch=2.5.1 hf=4.46.3 vllm=0.7.3 lmi_dist=13.0.0
djl-lmi 0.33.0 python=3.12 torch=2.6.0 hf=4.51.3 vllm=0.8.4
djl-lmi 0.34.0 python=3.12 torch=2.8.0 hf=4.55.2 vllm=0.10.2
djl-lmi 0.35.0 python=3.12 torch=2.9.0 hf=4.57.1 vllm=0.11.1
djl-lmi 0.36.0 python=3.12 torch=2.11.0 vllm=0.23.0
djl-lmi 0.38.0 python=3.12 torch=2.13.0 vllm=0.28.0
"""
# CUDA and lowest compute capability: NVIDIA's Triton release notes of that month (capability of
# 24.05 and 24.09: of the months around them). Python: triton-inference-server/server,
# docs/introduction/compatibility.md, which starts at 24.04.
TRITON_CONTENTS = {
    "23.12": ("12.3", "sm60", "unknown"),
    "24.01": ("12.3", "sm60", "unknown"),
    "24.03": ("12.4", "sm60", "unknown"),
    "24.05": ("12.4", "sm60", "3.10"),
    "24.09": ("12.6", "sm60", "3.10"),
    "25.04": ("12.9", "sm75", "3.12"),
    "25.09": ("13.0", "sm75", "3.12"),
    "26.05": ("13.2", "sm75", "3.12"),
}
# Every build that AWS's list ever had and the SDK's tables lack, but for rebuilds of a tag:
# framework, version, Python, system, Neuron SDKs.
NEURON_BUILDS = """
pytorch-inference-neuron 1.5.1 py36 ubuntu16.04
pytorch-inference-neuron 1.7.1 py36 ubuntu18.04
pytorch-inference-neuron 1.9.1 py37 ubuntu18.04 1.16.1
pytorch-inference-neuron 1.10.1 py37 ubuntu18.04 1.17.0 1.17.1
pytorch-inference-neuron 1.10.2 py37 ubuntu18.04 1.19.0
pytorch-inference-neuron 1.12.1 py38 ubuntu20.04 2.5.0
pytorch-inference-neuron 1.13.1 py38 ubuntu20.04 2.10.0
pytorch-inference-neuron 1.13.1 py310 ubuntu20.04 2.11.0 2.12.0 2.13.2 2.14.1 2.15.0 2.17.0
pytorch-inference-neuron 1.13.1 py310 ubuntu20.04 2.18.0 2.18.1 2.18.2 2.19.0 2.19.1
pytorch-inference-neuron 1.13.1 py310 ubuntu20.04 2.20.0 2.20.1 2.20.2
pytorch-inference-neuronx 1.13.0 py38 ubuntu20.04 2.9.0
pytorch-inference-neuronx 1.13.1 py38 ubuntu20.04 2.10.0
pytorch-inference-neuronx 1.13.1 py310 ubuntu20.04 2.11.0 2.12.0 2.13.2 2.14.1 2.15.0 2.17.0
pytorch-inference-neuronx 1.13.1 py310 ubuntu20.04 2.18.0 2.18.1 2.18.2 2.19.0 2.19.1
pytorch-inference-neuronx 1.13.1 py310 ubuntu20.04 2.20.0 2.20.1 2.20.2
pytorch-inference-neuronx 2.1.1 py310 ubuntu20.04 2.17.0
pytorch-inference-neuronx 2.1.2 py310 ubuntu20.04 2.18.0 2.18.1 2.18.2 2.19.0 2.19.1
pytorch-inference-neuronx 2.1.2 py310 ubuntu20.04 2.20.0 2.20.1 2.20.2
pytorch-inference-neuronx 2.5.1 py310 ubuntu22.04 2.21.0 2.21.1 2.22.0
pytorch-inference-neuronx 2.6.0 py310 ubuntu22.04 2.23.0
pytorch-inference-neuronx 2.7.0 py310 ubuntu22.04 2.24.0 2.24.1 2.25.0
pytorch-inference-neuronx 2.8.0 py311 ubuntu22.04 2.26.0 2.26.1
pytorch-inference-neuronx 2.9.0 py312 ubuntu24.04 2.27.1 2.28.0 2.29.0 2.29.1 2.30.0 2.31.0 2.31.1
huggingface-pytorch-inference-neuron 1.10.2-transformers4.20.1 py37 ubuntu18.04 1.19.1
huggingface-vllm-inference-neuronx 0.11.0-optimum0.4.5 py310 ubuntu22.04 2.26.1
"""
DEFAULT_AMIS: dict[str, tuple[str | None, str]] = {
    "cpu": (None, "no accelerator: any host runs the image"),
    "cuda 11": (
        None,
        "every default GPU host has NVIDIA driver 470 (CUDA 11.4) or newer, which runs CUDA 11 "
        "(SageMaker AI Developer Guide, GPU driver versions)",
    ),
    "cuda 12": (
        "al2-ami-sagemaker-inference-gpu-3-1",
        "default hosts of ml.g4dn, ml.g5 and ml.p4d have driver 470, too old for CUDA 12; driver "
        "550 is what AWS tests its CUDA 12 images with, and the newer AMI fails with them "
        "(aws/deep-learning-containers, test/test_utils/constants.py and pull request 6187)",
    ),
    "cuda 13": (
        "al2023-ami-sagemaker-inference-gpu-4-1",
        "only this AMI has a driver (580) that runs CUDA 13 "
        "(aws/deep-learning-containers, test/test_utils/constants.py)",
    ),
    "neuron": (None, "Inferentia 1 hosts take no InferenceAmiVersion"),
    "neuronx": (
        "al2-ami-sagemaker-inference-neuron-2",
        "the only AMI for Inferentia 2 and Trainium (botocore, ProductionVariant)",
    ),
}


class Tag(NamedTuple):
    """One image as its source names it, before what is in it is looked up."""

    framework: str
    version: str
    tag: str
    repository: str
    accounts: Mapping[str, str]


def _dotted(digits: str) -> str:
    """Returns 11.7 for 117 and 3.10 for 310: versions as tags write them."""
    return (
        f"{digits[:-1]}.{digits[-1]}"
        if len(digits) == 3 and digits[0] == "1"
        else (f"{digits[0]}.{digits[1:]}")
    )


def _sdk_table(name: str) -> Any:
    return json.loads(
        package_file("sagemaker-core", f"{SDK_TABLES}/{name}.json").read_text("utf-8")
    )


def _djl_and_triton() -> Iterator[Tag]:
    for name in (
        "djl-fastertransformer",
        "djl-deepspeed",
        "djl-neuronx",
        "djl-tensorrtllm",
        "djl-lmi",
        "sagemaker-tritonserver",
    ):
        for version, row in _sdk_table(name)["versions"].items():
            yield Tag(name, version, row["tag_prefix"], row["repository"], row["registries"])


def _hugging_face() -> Iterator[Tag]:
    for version, row in _sdk_table("huggingface-llm")["inference"]["versions"].items():
        parts = (row["tag_prefix"], "gpu", row["py_versions"][0], row["container_version"]["gpu"])
        name = row["repository"]
        yield Tag(name, version, "-".join(parts), name, row["registries"])
    for name, processor in (
        ("", "gpu"),
        ("", "cpu"),
        ("-neuron", "neuron"),
        ("-neuronx", "neuronx"),
    ):
        table = _sdk_table(f"huggingface{name}")["inference"]
        for transformers, builds in table["versions"].items():
            for build, row in builds.items():
                if not build.startswith("pytorch"):
                    continue
                version = f"{build.removeprefix('pytorch')}-transformers{transformers}"
                system = row["container_version"]["inf" if name else processor]
                middle = (processor, row["py_versions"][0], *row.get("sdk_versions", ()), system)
                repository = row["repository"]
                framework = repository if name else f"{repository}-{processor}"
                tag = "-".join((version, *middle))
                yield Tag(framework, version, tag, repository, row["registries"])
    for row in _sdk_table("huggingface-vllm-neuronx")["inference"]["versions"].values():
        name, version = row["repository"], row["tag_prefix"]
        parts = (version, "neuronx", row["py_versions"][0], row["sdk_versions"][0])
        tag = "-".join((*parts, row["container_version"]["neuronx"]))
        yield Tag(name, version, tag, name, row["registries"])


def _neuron(accounts: Mapping[str, str]) -> Iterator[Tag]:
    registries = {region: accounts[region] for region in NEURON_REGIONS.split()}
    for line in NEURON_BUILDS.strip().splitlines():
        framework, version, python, system, *sdks = line.split()
        for sdk in [f"-sdk{number}" for number in sdks] or [""]:
            # One PyTorch version came with several SDKs.
            name = version + sdk if framework.startswith("pytorch") else version
            tag = f"{version}-{framework.rpartition('-')[2]}-{python}{sdk}-{system}"
            yield Tag(framework, name, tag, framework, registries)


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _dated(table: Mapping[str, Any], key: str, name: str) -> Any:
    """Returns a row of a table above, which has to grow with the packages."""
    if key not in table:
        raise SourceError(f"the SDK has a new image, {key}: add what is in it to {name}")
    return table[key]


def _contents(tag: Tag) -> dict[str, Any]:
    """Returns what is in an image: from its tag, and from the dated tables above."""
    found = {name: re.search(pattern, tag.tag) for name, pattern in PATTERNS.items()}
    cuda = _dotted(found["cuda"][1]) if found["cuda"] else None
    python = _dotted(found["python"][1]) if found["python"] else "unknown"
    sdk = found["neuron_sdk"][1] if found["neuron_sdk"] else None
    capability = "unknown" if cuda else None
    components = {
        name: match[1]
        for name, match in found.items()
        if match and name not in ("cuda", "python", "neuron_sdk")
    }
    if tag.framework.startswith("djl-"):
        rows = (line.split() for line in DJL_CONTENTS.strip().splitlines())
        contents = {f"{row[0]} {row[1]}": row[2:] for row in rows}
        cells = _dated(contents, f"{tag.framework} {tag.version}", "DJL_CONTENTS")
        pairs = (cell.split("=") for cell in cells)
        components.update({FULL_NAMES.get(name, name): number for name, number in pairs})
        python = components.pop("python")
        server = f"DJL Serving {tag.version}"
    elif tag.framework == "sagemaker-tritonserver":
        cuda, capability, python = _dated(TRITON_CONTENTS, tag.version, "TRITON_CONTENTS")
        server = f"Triton Inference Server {tag.version}"
    elif tag.framework.startswith("pytorch-inference-neuron"):
        components["torch"] = tag.version.partition("-")[0]
        # The lists of aws-neuron/deep-learning-containers give the version from SDK 2.20.2 on.
        server = "TorchServe 0.11.0" if sdk and _order(sdk) >= [2, 20, 2] else "TorchServe"
    elif tag.framework == "huggingface-vllm-inference-neuronx":
        components["vllm"] = tag.version.partition("-")[0]
        server = f"vLLM {components['vllm']}"
    else:
        components["torch"] = tag.tag.partition("-")[0]
        server = "Hugging Face inference toolkit"
        if "text-generation-inference" in components:
            server = f"Text Generation Inference {components['text-generation-inference']}"
        elif tag.framework.endswith("-neuron"):
            server = "Multi Model Server"
    return {
        "server": server,
        "cuda": cuda,
        "minimum_compute_capability": capability,
        "python": python,
        "neuron_sdk": sdk,
        "components": dict(sorted(components.items())),
    }


PATTERNS = {
    "cuda": r"-cu(\d+)",
    "python": r"-py(\d{2,})(?:-|$)",
    "neuron_sdk": r"sdk([\d.]+\d)",
    "fastertransformer": r"-fastertransformer([\d.]+)",
    "deepspeed": r"-deepspeed([\d.]+)",
    "tensorrt-llm": r"-tensorrtllm([\d.]+)",
    "lmi": r"-lmi([\d.]+)",
    "text-generation-inference": r"-tgi([\d.]+)",
    "transformers": r"-transformers([\d.]+)",
    "optimum-neuron": r"-optimum([\d.]+)",
}


def _accelerator(tag: Tag) -> str:
    for suffix in ("neuronx", "neuron", "cpu"):
        if tag.framework.endswith(f"-{suffix}"):
            return suffix
    return "gpu"


def _legacy(tag: Tag, newest: Mapping[str, str]) -> list[str] | None:
    """Returns why a version is legacy, and framework and version of the living alternative."""
    if tag.framework in GONE:
        reason, alternative = GONE[tag.framework]
        return [reason, alternative, newest[alternative]]
    if _order(tag.version) >= _order(OLDEST_LISTED[tag.framework]):
        return None
    reason = UNSAFE_FRONT_END if tag.framework == "sagemaker-tritonserver" else SUPERSEDED
    return [reason, tag.framework, newest[tag.framework]]


def _inference_amis() -> dict[str, Any]:
    """Returns what botocore says of each value of InferenceAmiVersion."""
    model = botocore.session.Session().get_service_model("sagemaker")
    names = model.shape_for("ProductionVariantInferenceAmiVersion")
    variant = model.shape_for("ProductionVariant")
    if not isinstance(names, StringShape) or not isinstance(variant, StructureShape):
        raise SourceError("botocore no longer lists the values of InferenceAmiVersion")
    text = variant.members["InferenceAmiVersion"].documentation
    amis: dict[str, Any] = {}
    for name in sorted(names.enum):
        about = text.partition(f"<dt>{name}</dt>")[2].partition("</dd>")[0]
        facts = {
            key: match[1] if (match := re.search(rf"{label}: ([^<]+)<", about)) else None
            for key, label in (
                ("accelerator", "Accelerator"),
                ("nvidia_driver", "NVIDIA driver version"),
                ("cuda", "CUDA version"),
                ("neuron_driver", "Neuron driver version"),
            )
        }
        amis[name] = {**facts, "mounts_cuda_compat": "disabled CUDA-compat" not in about}
    return amis


def _row(tag: Tag, region_set: str, newest: Mapping[str, str]) -> dict[str, Any]:
    contents, accelerator = _contents(tag), _accelerator(tag)
    host = f"cuda {contents['cuda'].partition('.')[0]}" if contents["cuda"] else accelerator
    return {
        "tag": tag.tag,
        "repository": tag.repository,
        "accelerator": accelerator,
        **contents,
        "legacy": _legacy(tag, newest),
        "inference_ami": DEFAULT_AMIS[host][0],
        # No registry or list of AWS publishes it.
        "compressed_size_gb": "unknown",
        "regions": region_set,
    }


@functools.cache
def _partitions() -> list[dict[str, Any]]:
    content = botocore.loaders.create_loader().load_data("endpoints")
    partitions: list[dict[str, Any]] = content["partitions"]
    return partitions


def _domain_suffix(region: str) -> str:
    for partition in _partitions():
        if re.match(partition["regionRegex"], region):
            return str(partition["dnsSuffix"])
    raise SourceError(f"botocore {botocore.__version__} has no partition for {region}")


def table(as_of: datetime.date) -> str:
    """Returns the table's text."""
    from_sdk = [*_djl_and_triton(), *_hugging_face()]
    accounts = {region: account for tag in from_sdk for region, account in tag.accounts.items()}
    tags = sorted(
        [*from_sdk, *_neuron(accounts)], key=lambda tag: (tag.framework, _order(tag.version))
    )
    newest = {tag.framework: tag.version for tag in tags}
    registries: dict[str, dict[str, str]] = {}
    for region in sorted(accounts):
        registries.setdefault(_domain_suffix(region), {})[region] = accounts[region]
    sets: dict[tuple[str, ...], str] = {}
    images: dict[str, dict[str, Any]] = {}
    for tag in tags:
        name = f"{tag.framework} {tag.version}"
        if any(accounts[region] != account for region, account in tag.accounts.items()):
            raise SourceError(
                f"{name} has other accounts than the rest: the table has one a region"
            )
        rows = images.setdefault(tag.framework, {})
        if tag.version in rows:
            raise SourceError(f"{name} is there twice: take it out of NEURON_BUILDS")
        regions = sets.setdefault(tuple(sorted(tag.accounts)), name)
        rows[tag.version] = _row(tag, regions, newest)
    return render(
        {
            "as_of": as_of.isoformat(),
            "sources": [
                f"sagemaker-core {package_version('sagemaker-core')}, image_uri_config: tags, "
                "repositories, registry accounts, regions",
                f"botocore {botocore.__version__}: domain suffixes (endpoints.json), values of "
                "InferenceAmiVersion and what each host has (ProductionVariant)",
                "aws/deep-learning-containers at e0ecedea6a (2026-08-21), docs/src/data and "
                "available_images.md in its history: tags the SDK lacks, what is still listed",
                "deepjavalibrary/djl-serving, Dockerfiles of the branches VERSION-dlc, and pull "
                "request 3075 (LMI 29): Python and packages in DJL images",
                "NVIDIA Triton Inference Server release notes; triton-inference-server/server at "
                "0f963c9a8c, docs/introduction/compatibility.md: CUDA, Python, compute capability",
                "aws-neuron/deep-learning-containers at 2be9ed1d5d (2026-08-17), README: server",
            ],
            "registries": registries,
            "region_sets": {name: list(regions) for regions, name in sets.items()},
            "inference_amis": _inference_amis(),
            "default_inference_amis": {
                host: {"inference_ami": ami, "reason": reason}
                for host, (ami, reason) in DEFAULT_AMIS.items()
            },
            "images": images,
        },
        levels=3,
    )


if __name__ == "__main__":
    sys.exit(run(PATH, table))
