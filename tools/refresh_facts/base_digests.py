"""Writes slipway/facts/base_digests.json: the digests of the images that Slipway builds on.

`python -m tools.refresh_facts.base_digests` asks NVIDIA's registry, which needs no account. With
`--region REGION`, which may be repeated, it asks AWS's registry of that region too, with the
shell's credentials. A registry that is not asked keeps the digests that it told before.

No source without a network has these digests: neither sagemaker-core, nor AWS's lists of images,
nor NVIDIA's release notes. One public Dockerfile names a digest of NVIDIA's 24.09, without saying
whether it is an index or one platform's image. It is left out: a wrong digest fails every build.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.exceptions import BotoCoreError, ClientError

from slipway.facts.images import ImageFacts, UnknownImageError, frameworks, image, versions
from slipway.facts.neuron.drivers import newest_neuron_version
from slipway.facts.tensorrt.releases import tensorrt_releases
from slipway.facts.triton.releases import TRITON, triton_bases
from slipway.planning.families.lmi.handlers import our_handler
from slipway.planning.families.neuron.hardware import NEURON_BASES
from tools.refresh_facts.tables import FACTS, SourceError, run

PATH = FACTS / "base_digests.json"
NVIDIA = "https://nvcr.io"
SOURCE = "the registries themselves, asked by `python -m tools.refresh_facts.base_digests`"
MANIFESTS = (
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def nvidia_digests(registry: str = NVIDIA) -> dict[str, str]:
    """Asks NVIDIA's registry for the digest of each TensorRT image."""
    names = [f"nvidia/tensorrt:{each.base_image}" for each in tensorrt_releases().values()]
    with httpx.Client(base_url=registry, timeout=30) as client:
        return {name: _registry_digest(client, name) for name in names}


def _registry_digest(client: httpx.Client, name: str) -> str:
    repository, _, tag = name.partition(":")
    headers = {"Accept": ", ".join(MANIFESTS)}
    path = f"/v2/{repository}/manifests/{tag}"
    answer = client.head(path, headers=headers)
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        # https://distribution.github.io/distribution/spec/auth/token/
        asked = dict(re.findall(r'(\w+)="([^"]*)"', answer.headers.get("WWW-Authenticate", "")))
        if "realm" not in asked:
            raise SourceError(f"{client.base_url} asks for a log-in and names no place for it")
        token = client.get(asked.pop("realm"), params=asked).raise_for_status().json()["token"]
        answer = client.head(path, headers={**headers, "Authorization": f"Bearer {token}"})
    answer.raise_for_status()
    return _checked(name, answer.headers.get("Docker-Content-Digest"))


def aws_digests(region: str, client: Any) -> dict[str, str]:
    """Asks AWS's registry of a region, with boto3's client of ECR, for the digest of each base."""
    found = {}
    for base in _aws_bases(region):
        answer = client.batch_get_image(
            registryId=base.account,
            repositoryName=base.repository,
            imageIds=[{"imageTag": base.tag}],
            acceptedMediaTypes=list(MANIFESTS),
        )
        name = f"{base.repository}:{base.tag}"
        images = answer["images"]
        found[name] = _checked(name, images[0]["imageId"]["imageDigest"] if images else None)
    return found


def _aws_bases(region: str) -> Iterator[ImageFacts]:
    named = [(each, newest_neuron_version(each)) for each in NEURON_BASES.values()]
    named += [(TRITON, version) for version in triton_bases()]
    named += [(each, version) for each in frameworks() for version in versions(each)
              if our_handler(each, version) is not None]  # fmt: skip
    for framework, version in named:
        try:
            base = image(framework, version, region)
        except UnknownImageError:
            raise SourceError(f"AWS publishes no image in {region}") from None
        if base.account is not None:
            yield base


def _checked(name: str, digest: str | None) -> str:
    if digest is None or not _DIGEST.fullmatch(digest):
        raise SourceError(f"the registry tells no digest of {name}: {digest}")
    return digest


def merged(known: Mapping[str, str], *told: Mapping[str, str]) -> dict[str, str]:
    """Returns the known digests with those that registries told now, sorted.

    Raises `SourceError` if two registries differ. Then no digest is right in each region.
    """
    new: dict[str, str] = {}
    for answers in told:
        for name, digest in answers.items():
            if new.setdefault(name, digest) != digest:
                raise SourceError(f"two regions have different images of {name}")
    return dict(sorted({**known, **new}.items()))


def _connect(region: str) -> Any:
    return boto3.client("ecr", region_name=region)


def main(
    arguments: Sequence[str],
    *,
    path: Path = PATH,
    registry: str = NVIDIA,
    connect: Callable[[str], Any] = _connect,
) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.refresh_facts.base_digests",
        description="Write base_digests.json anew.",
    )
    parser.add_argument("--region", action="append", default=[], help="ask AWS's registry there")
    options = parser.parse_args(arguments)
    try:
        known = json.loads(path.read_text("utf-8"))["digests"]
        aws = [aws_digests(region, connect(region)) for region in options.region]
        digests = merged(known, nvidia_digests(registry), *aws)
    except (SourceError, BotoCoreError, ClientError, httpx.HTTPError) as error:
        print(f"Not refreshed: base_digests.json is as it was: {error}", file=sys.stderr)
        return 1

    table = {"sources": [SOURCE], "digests": digests}
    return run(path, lambda: table, levels=2)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
