"""Writes slipway/facts/images.json: the images that AWS provides, and their contents.

    python -m tools.refresh_facts.images

Tags and registry accounts come from the SageMaker SDK's tables (the package sagemaker-core), domain
suffixes and host AMIs from botocore. Facts that neither of them has are in image_tables.yaml:
Neuron images that the SDK's look-up cannot return, the contents of an image, and the images that
AWS still lists. Check that file, and the sources that its tables name, when a package has been
updated.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import botocore
import botocore.loaders
import botocore.session
from botocore.model import StringShape, StructureShape

from slipway.facts.tables import UNKNOWN
from tools.refresh_facts.tables import (
    FACTS,
    SourceError,
    by_hand,
    package_file,
    package_version,
    run,
)

PATH = FACTS / "images.json"
SDK_TABLES = "sagemaker/core/image_uri_config"
TABLES: Final = by_hand("image_tables.yaml")
_NEURON = ("neuron", "neuronx")


class Tag(NamedTuple):
    """One image as its source names it, before its contents are looked up."""

    framework: str
    version: str
    tag: str
    repository: str
    accounts: Mapping[str, str]


def _dotted(digits: str) -> str:
    """Returns 11.7 for 117 and 3.10 for 310: versions as tags write them."""
    whole = 2 if len(digits) == 3 and digits[0] == "1" else 1
    return f"{digits[:whole]}.{digits[whole:]}"


def _from_sdk() -> Iterator[Tag]:
    for form in TABLES["sdk_tables"]:
        file = package_file("sagemaker-core", f"{SDK_TABLES}/{form['table']}.json")
        table = json.loads(file.read_text("utf-8"))
        versions = table.get("inference", table)["versions"]
        if form.get("has_builds"):
            versions = {
                f"{build.removeprefix('pytorch')}-transformers{transformers}": row
                for transformers, builds in versions.items()
                for build, row in builds.items()
                if build.startswith("pytorch")
            }
        for version, row in versions.items():
            name = form.get("version", "{at}").format(at=version, **row)
            tag = form["tag"].format(at=version, **row)
            framework = form.get("framework", row["repository"])
            yield Tag(framework, name, tag, row["repository"], row["registries"])


def _neuron(accounts: Mapping[str, str]) -> Iterator[Tag]:
    registries = {region: accounts[region] for region in TABLES["neuron_regions"].split()}
    for line in TABLES["djl_builds"]:
        framework, version, tag = line.split()
        yield Tag(framework, version, tag, "djl-inference", registries)
    for line in TABLES["neuron_builds"]:
        framework, version, python, system, *sdks = line.split()
        for sdk in [f"-sdk{number}" for number in sdks] or [""]:
            # One PyTorch version came with several SDKs.
            name = version + sdk if framework.startswith("pytorch") else version
            tag = f"{version}-{framework.rpartition('-')[2]}-{python}{sdk}-{system}"
            yield Tag(framework, name, tag, framework, registries)


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _dated(tag: Tag, table: Mapping[str, Any], name: str) -> Any:
    """Returns a version's row of a dated table, which must grow with the packages."""
    if tag.version not in table:
        image = f"{tag.framework} {tag.version}"
        raise SourceError(f"the SDK has a new image, {image}: add what is in it to {name}")
    return table[tag.version]


def _contents(tag: Tag) -> dict[str, Any]:
    patterns, framework = TABLES["patterns"], tag.framework
    found = {name: re.search(pattern, tag.tag) for name, pattern in patterns.items()}
    components: dict[str, str] = {name: match[1] for name, match in found.items() if match}
    cuda, python, sdk = (components.pop(name, None) for name in ("cuda", "python", "neuron_sdk"))
    cuda, python = (each and _dotted(each) for each in (cuda, python))
    capability = None
    if cuda is not None:
        capability = TABLES["cuda_capabilities"].get(cuda.partition(".")[0], UNKNOWN)
    if framework.startswith("djl-"):
        components |= _dated(tag, TABLES["djl_contents"].get(framework, {}), "djl_contents")
        python = components.pop("python")
        capability = components.pop("capability", capability)
    elif framework == "sagemaker-tritonserver":
        cuda, capability, python = _dated(tag, TABLES["triton_contents"], "triton_contents")
    else:
        components["vllm" if "-vllm-" in framework else "torch"] = tag.tag.partition("-")[0]
    server = next(each for start, each in TABLES["servers"].items() if framework.startswith(start))
    # The lists of aws-neuron/deep-learning-containers give the version from SDK 2.20.2 on.
    if server == "TorchServe" and sdk and _order(sdk) >= [2, 20, 2]:
        server = "TorchServe 0.11.0"
    return {
        "server": server.format(version=tag.version, components=components),
        "cuda": cuda,
        "minimum_compute_capability": capability,
        "python": python or UNKNOWN,
        "neuron_sdk": sdk,
        "components": dict(sorted(components.items())),
    }


def _accelerator(tag: Tag) -> str:
    last = tag.framework.rpartition("-")[2]
    return last if last in (*_NEURON, "cpu") else "gpu"


def _legacy(tag: Tag, newest: Mapping[str, str]) -> list[str] | None:
    """Returns why a version is legacy, and framework and version of the living alternative."""
    if gone := TABLES["gone"].get(tag.framework):
        return [gone["reason"], gone["alternative"], newest[gone["alternative"]]]
    if _order(tag.version) >= _order(TABLES["oldest_listed"][tag.framework]):
        return None
    is_triton = tag.framework == "sagemaker-tritonserver"
    reason = TABLES["unsafe_front_end" if is_triton else "superseded"]
    return [reason, tag.framework, newest[tag.framework]]


_AMI_LABELS = {
    "accelerator": "Accelerator",
    "nvidia_driver": "NVIDIA driver version",
    "cuda": "CUDA version",
    "neuron_driver": "Neuron driver version",
}


def _inference_amis() -> dict[str, Any]:
    model = botocore.session.Session().get_service_model("sagemaker")
    names = model.shape_for("ProductionVariantInferenceAmiVersion")
    variant = model.shape_for("ProductionVariant")
    if not isinstance(names, StringShape) or not isinstance(variant, StructureShape):
        raise SourceError("botocore no longer lists the values of InferenceAmiVersion")
    text = variant.members["InferenceAmiVersion"].documentation
    amis: dict[str, Any] = {}
    for name in sorted(names.enum):
        about = text.partition(f"<dt>{name}</dt>")[2].partition("</dd>")[0]
        found = {key: re.search(f"{label}: ([^<]+)<", about) for key, label in _AMI_LABELS.items()}
        facts: dict[str, Any] = {key: match and match[1] for key, match in found.items()}
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
        "inference_ami": TABLES["default_inference_amis"][host]["inference_ami"],
        # No registry or list of AWS publishes it.
        "compressed_size_gb": "unknown",
        "regions": region_set,
    }


def _domain_suffix(region: str, partitions: list[dict[str, Any]]) -> str:
    for partition in partitions:
        if re.match(partition["regionRegex"], region):
            return str(partition["dnsSuffix"])
    raise SourceError(f"botocore {botocore.__version__} has no partition for {region}")


def table() -> Mapping[str, Any]:
    from_sdk = list(_from_sdk())
    accounts = {region: account for tag in from_sdk for region, account in tag.accounts.items()}
    tags = sorted(
        [*from_sdk, *_neuron(accounts)], key=lambda tag: (tag.framework, _order(tag.version))
    )
    newest = {tag.framework: tag.version for tag in tags}
    partitions = botocore.loaders.create_loader().load_data("endpoints")["partitions"]
    registries: dict[str, dict[str, str]] = {}
    for region in sorted(accounts):
        registries.setdefault(_domain_suffix(region, partitions), {})[region] = accounts[region]
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
            raise SourceError(f"{name} is there twice: take it out of neuron_builds or djl_builds")
        regions = sets.setdefault(tuple(sorted(tag.accounts)), name)
        rows[tag.version] = _row(tag, regions, newest)
    return {
        "sources": [
            f"sagemaker-core {package_version('sagemaker-core')}, image_uri_config: tags, "
            "repositories, registry accounts, regions",
            f"botocore {botocore.__version__}: domain suffixes (endpoints.json), values of "
            "InferenceAmiVersion and what each host has (ProductionVariant)",
            *TABLES["sources"],
        ],
        "registries": registries,
        "region_sets": {name: list(regions) for regions, name in sets.items()},
        "inference_amis": _inference_amis(),
        "default_inference_amis": TABLES["default_inference_amis"],
        "neuron_drivers": TABLES["neuron_drivers"],
        "images": images,
    }


if __name__ == "__main__":
    sys.exit(run(PATH, table, levels=3))
