"""Promotes a container's image: another registry gets the very image that was tested, by digest.

Manifest and layers pass through this machine's memory. ECR computes the digest of each layer and of
the manifest, and refuses other bytes
(https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_CompleteLayerUpload.html).
"""

import json
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from slipway.access import Access, existing
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.planning.plan import ImagePlan
from slipway.project import Project
from slipway.publishing.progress import Progress

# Slipway's builds make images of one platform, never an index.
_KINDS = [
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
]

_NO_REPOSITORY = "RepositoryNotFoundException"


@dataclass(frozen=True)
class PromotedImage:
    """The image in the target's registry; `copied_bytes` is 0 where all of it was there."""

    uri: str
    digest: str
    copied_bytes: int


def promote_image(
    project: Project,
    name: str,
    environment: Environment,
    access: Access,
    progress: Progress,
    *,
    source: Environment,
    source_access: Access,
) -> PromotedImage:
    """Copies the image that serves a model from another environment's registry.

    The tag is the last that arrives, and layers that are there are not copied again.

    Raises:
        UserError: Slipway builds no such image, one of the registries lacks what it needs, or the
            target has another image under the tag.
    """
    target, tested = (
        project.plan(name, each, allow_unpublished=True).image for each in (environment, source)
    )
    if tested.base is None or source.is_local or environment.is_local:
        raise UserError.of(
            Code.WRONG_OPTIONS,
            "`--image` has no effect: Slipway builds no image for "
            + (f"`{name}`" if tested.base is None else "`local`"),
            "Leave `--image` out.",
        )
    ecr = access.client("ecr")
    try:
        image = _find(source_access.client("ecr"), tested)
        if image is None:
            family = tested.repository.rpartition("/")[2]
            raise UserError.of(
                Code.IMAGE_MISSING,
                f"`{source.name}` has no image {tested.uri}",
                f"Run `cdk deploy image-{family} -c env={source.name}`, test, then promote.",
            )
        digest = image["imageId"]["imageDigest"]
        there = _find(ecr, target)
        if there is None:
            copied = _copy(image, source_access, tested, ecr, target, progress)
            return PromotedImage(target.uri, digest, copied)
    except (BotoCoreError, ClientError) as error:
        if isinstance(error, ClientError) and error.response["Error"]["Code"] == _NO_REPOSITORY:
            raise UserError.of(
                Code.IMAGE_MISSING,
                f"`{environment.name}` has no repository {target.repository}",
                "Make it with `aws ecr create-repository --image-tag-mutability IMMUTABLE --region "
                f"{target.region} --repository-name {target.repository}`, and deploy its stack "
                "later with `--import-existing-resources`.",
            ) from None
        raise UserError.of(
            Code.PROMOTION_STOPPED,
            f"the image {tested.uri} could not be copied: {error}",
            "Run the command again: layers that arrived are not copied again. The rights for it "
            f"are what `slipway iam {name} --env {environment.name} --from {source.name} --image` "
            "prints.",
        ) from None
    if there["imageId"]["imageDigest"] != digest:
        raise UserError.of(
            Code.IMAGE_DIFFERS,
            f"{target.uri} is not the tested image: it is {there['imageId']['imageDigest']}, and "
            f"`{source.name}` has {digest}",
            "A tag keeps its image. Where no endpoint runs it, delete it with `aws ecr "
            f"batch-delete-image --region {target.region} --repository-name {target.repository} "
            f"--image-ids imageTag={target.tag}`, then run the command again.",
        )
    return PromotedImage(target.uri, digest, 0)


def _place(image: ImagePlan) -> dict[str, str]:
    return {"registryId": image.account, "repositoryName": image.repository}


# Any: boto3's clients and their answers.
def _find(ecr: Any, image: ImagePlan) -> Any:
    """Returns the image, or None; a target without a repository is found out by the copy."""
    tags = [{"imageTag": image.tag}]
    answer = existing(
        ecr.batch_get_image,
        _NO_REPOSITORY,
        **_place(image),
        imageIds=tags,
        acceptedMediaTypes=_KINDS,
    )
    return answer["images"][0] if answer and answer["images"] else None


def _copy(
    image: Any, source: Access, tested: ImagePlan, ecr: Any, target: ImagePlan, progress: Progress
) -> int:
    origin, bundle = source.client("ecr"), source.process_environment().get("AWS_CA_BUNDLE")
    manifest = json.loads(image["imageManifest"])
    place = _place(target)
    sizes = {
        part["digest"]: part["size"]
        for part in (manifest["config"], *manifest["layers"])
        if not _is_there(ecr, place, part["digest"])
    }
    progress.start(sum(sizes.values()), "copying")
    for digest in sizes:
        address = origin.get_download_url_for_layer(**_place(tested), layerDigest=digest)
        _copy_layer(address["downloadUrl"], bundle, digest, ecr, place, progress)
    ecr.put_image(
        **place,
        imageManifest=image["imageManifest"],
        imageManifestMediaType=image.get("imageManifestMediaType") or manifest["mediaType"],
        imageTag=target.tag,
        imageDigest=image["imageId"]["imageDigest"],
    )
    return sum(sizes.values())


def _is_there(ecr: Any, place: dict[str, str], digest: str) -> bool:
    answer = ecr.batch_check_layer_availability(**place, layerDigests=[digest])
    return any(layer["layerAvailability"] == "AVAILABLE" for layer in answer["layers"])


def _copy_layer(
    address: str,
    bundle: str | None,
    digest: str,
    ecr: Any,
    place: dict[str, str],
    progress: Progress,
) -> None:
    session = URLLib3Session(
        verify=bundle or True,  # type: ignore[arg-type]  # or a path
        proxies=get_environ_proxies(address),
    )
    answer = session.send(AWSRequest("GET", address, stream_output=True).prepare())
    with closing(session), closing(answer.raw) as body:
        if answer.status_code != HTTPStatus.OK:
            raise HTTPClientError(error=f"{answer.status_code} for the layer {digest}")
        upload = ecr.initiate_layer_upload(**place)
        of_upload = {**place, "uploadId": upload["uploadId"]}
        first = 0
        while part := body.read(upload["partSize"]):
            end = first + len(part)
            ecr.upload_layer_part(
                **of_upload, partFirstByte=first, partLastByte=end - 1, layerPartBlob=part
            )
            first = end
            progress.advance(len(part))
    # Of a part of a layer, ECR computes another digest.
    ecr.complete_layer_upload(**of_upload, layerDigests=[digest])
