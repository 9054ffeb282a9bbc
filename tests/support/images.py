"""Images in ECR, of which only the manifest exists."""

import json
from typing import Any


def put_image(ecr: Any, repository: str, tag: str) -> None:
    """Puts an image without layers under a tag, and makes its repository where there is none.

    The tag also tells the image from others: each has a digest of its own.
    """
    pages = ecr.get_paginator("describe_repositories").paginate()
    if not any(
        each["repositoryName"] == repository for page in pages for each in page["repositories"]
    ):
        ecr.create_repository(repositoryName=repository)
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"digest": f"sha256:{tag.encode().hex()[:64]:0>64}", "size": 1},
        "layers": [],
    }
    ecr.put_image(repositoryName=repository, imageManifest=json.dumps(manifest), imageTag=tag)
