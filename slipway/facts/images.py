"""The container images that AWS provides: tags, registries, contents, and which are maintained.

`python -m tools.refresh_facts.images` writes the table and names its sources.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from slipway.facts.instances import architecture
from slipway.facts.tables import known, read_table


class UnknownImageError(LookupError):
    """The table has no such image; `known` has its values, for a message that names the nearest."""

    what = "image"

    def __init__(self, value: str, known: tuple[str, ...]) -> None:
        super().__init__(f"no {self.what} {value!r} in the table")
        self.value = value
        self.known = known


class UnknownFrameworkError(UnknownImageError):
    """No images of that name; `known` holds every framework."""

    what = "framework"


class UnknownVersionError(UnknownImageError):
    """The framework has no image of that version; `known` holds its versions, oldest first."""

    what = "version"


class UnknownRegionError(UnknownImageError):
    """No image of any framework is published in a region of that name; `known` holds the rest."""

    what = "region"


@dataclass(frozen=True, slots=True)
class Legacy:
    """Why an image is no longer a good choice.

    The reason is half a sentence, for example "DJL Serving has no DeepSpeed since 0.28.0".
    Framework and version are where to go instead, which may be the same framework.
    """

    reason: str
    framework: str
    version: str


@dataclass(frozen=True, slots=True)
class InferenceAmi:
    """A value of InferenceAmiVersion: the software of the host that runs the container.

    Args:
        name: for example `al2-ami-sagemaker-inference-gpu-3-1`.
        accelerator: what it is for, as AWS writes it: `GPU` or `Inferentia2 and Trainium`.
        nvidia_driver: major version of the driver, for example `550`; None on Neuron hosts.
        cuda: newest CUDA version that the driver has, for example `12.4`; None on Neuron hosts.
        neuron_driver: None on GPU hosts.
        mounts_cuda_compat: whether the host mounts an image's CUDA compatibility libraries, so that
            the image may have a newer CUDA than the driver.
    """

    name: str
    accelerator: str
    nvidia_driver: str | None
    cuda: str | None
    neuron_driver: str | None
    mounts_cuda_compat: bool


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """One image in one region.

    Args:
        framework: the name in this table. It is the SDK's name of a DJL image, or else the
            repository. It ends with `-gpu` or `-cpu` if one version has an image for each.
        version: the name in this table; the tag may hold more.
        account: the registry's AWS account there; None if the image is not published.
        accelerator: device that it runs on: `gpu`, `neuron` (Inferentia 1 only), `neuronx`
            (Inferentia 2 and Trainium) or `cpu`.
        server: server in the image, with its version if a source gives it.
        cuda_version: of the image, for example `12.8`; None without CUDA.
        minimum_compute_capability: lowest GPU architecture it supports, for example `sm75`; None
            without CUDA, and if no source says.
        python_version: for example `3.12`; None if no source says.
        components: versions of libraries in it, by name; not complete.
        legacy: None if the image is maintained.
        inference_ami: the default of InferenceAmiVersion; None leaves it unset.
    """

    framework: str
    version: str
    region: str
    account: str | None
    domain_suffix: str
    repository: str
    tag: str
    accelerator: Literal["gpu", "neuron", "neuronx", "cpu"]
    server: str
    cuda_version: str | None
    minimum_compute_capability: str | None
    python_version: str | None
    neuron_sdk_version: str | None
    components: Mapping[str, str]
    legacy: Legacy | None
    inference_ami: str | None

    @property
    def digest(self) -> str | None:
        """Returns the digest that pins it as a base; None where no source tells one."""
        return base_digest(f"{self.repository}:{self.tag}")

    @property
    def uri(self) -> str | None:
        """Returns the URI for a model's `Image`; None if it is not published in the region."""
        if self.account is None:
            return None
        registry = f"{self.account}.dkr.ecr.{self.region}.{self.domain_suffix}"
        return f"{registry}/{self.repository}:{self.tag}"


@functools.cache
def _base_digests() -> Mapping[str, str]:
    return MappingProxyType(read_table("base_digests.json")["digests"])


def base_digest(image: str) -> str | None:
    """Returns the `sha256:` digest of an image that Slipway builds on, where a registry told it.

    The image is REPOSITORY:TAG, without the registry: a mirror has the same digests.
    """
    return _base_digests().get(image)


@functools.cache
def image_table() -> Mapping[str, Any]:
    """Returns the whole table of images and host images, as data."""
    return MappingProxyType(read_table("images.json"))


@functools.cache
def _registries() -> Mapping[str, tuple[str, str]]:
    return MappingProxyType(
        {
            region: (account, suffix)
            for suffix, accounts in image_table()["registries"].items()
            for region, account in accounts.items()
        }
    )


def frameworks() -> tuple[str, ...]:
    """Returns the frameworks that AWS has images of, sorted."""
    return tuple(image_table()["images"])


def versions(framework: str) -> tuple[str, ...]:
    """Returns a framework's versions, oldest first; raises `UnknownFrameworkError`."""
    if framework not in image_table()["images"]:
        raise UnknownFrameworkError(framework, frameworks())
    return tuple(image_table()["images"][framework])


def runs_on(framework: str, version: str, compute_capability: str) -> bool | None:
    """Returns whether an image has code for a GPU, such as `sm70`; None where no source says."""
    least = known(image_table()["images"][framework][version]["minimum_compute_capability"])
    return None if least is None else architecture(compute_capability) >= architecture(least)


def regions() -> tuple[str, ...]:
    """Returns the regions where any of the images is published, sorted."""
    return tuple(sorted(_registries()))


@functools.cache
def inference_amis() -> Mapping[str, InferenceAmi]:
    rows = image_table()["inference_amis"]
    return MappingProxyType({name: InferenceAmi(name, **row) for name, row in rows.items()})


def default_inference_ami(cuda_version: str) -> str | None:
    """Returns the InferenceAmiVersion that an image with that CUDA needs; None: any host will do.

    Args:
        cuda_version: for example `12.4`.
    """
    row = image_table()["default_inference_amis"].get(f"cuda {cuda_version.partition('.')[0]}")
    ami: str | None = row["inference_ami"] if row else None
    return ami


@functools.cache
def image(framework: str, version: str, region: str) -> ImageFacts:
    """Returns the facts of an image in a region, whether or not it is published there.

    Raises `UnknownImageError` for a framework, a version or a region that the table has not.
    """
    if version not in versions(framework):
        raise UnknownVersionError(version, versions(framework))
    if region not in _registries():
        raise UnknownRegionError(region, regions())
    row = image_table()["images"][framework][version]
    account, suffix = _registries()[region]
    return ImageFacts(
        framework=framework,
        version=version,
        region=region,
        account=account if region in image_table()["region_sets"][row["regions"]] else None,
        domain_suffix=suffix,
        repository=row["repository"],
        tag=row["tag"],
        accelerator=row["accelerator"],
        server=row["server"],
        cuda_version=row["cuda"],
        minimum_compute_capability=known(row["minimum_compute_capability"]),
        python_version=known(row["python"]),
        neuron_sdk_version=row["neuron_sdk"],
        components=MappingProxyType(row["components"]),
        legacy=None if row["legacy"] is None else Legacy(*row["legacy"]),
        inference_ami=row["inference_ami"],
    )
