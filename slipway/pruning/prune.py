"""What an environment keeps in S3 and ECR although nothing refers to it, and its deletion."""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from slipway.access import Access, paged
from slipway.config.environments import Environment
from slipway.planning.artifact_place import OUTPUT_PREFIX
from slipway.pruning.references import References, is_settings_file, with_packages

LEAST_AGE: Final = timedelta(days=1)
"""Younger files may belong to a publish whose lock is not committed yet."""

# [models/NAME/]artifacts/DIGEST/..., and what lies there.
_ARTIFACT: Final = re.compile(r"(?:models/[^/]+/)?artifacts/([0-9a-f]{64})/")
# compile/[models/NAME/]JOB/...
_OUTPUT: Final = re.compile(rf"{OUTPUT_PREFIX}(?:models/[^/]+/)?([^/]+)/")
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
# Of one DeleteObjects.
_MOST_OBJECTS: Final = 1000


@dataclass(frozen=True)
class Unused:
    """An artifact, compile output, unfinished upload or image that nothing refers to.

    The name is an address in S3, or REPOSITORY:TAG. An image shares layers with others, so it frees
    less than its size. S3 does not tell the size of an upload. `changed` is when the youngest part
    of it was written.
    """

    kind: str
    name: str
    size_bytes: int | None
    changed: datetime
    # What the deletion needs: keys in order, an upload's id, or an image's repository and tag.
    parts: tuple[str, ...] = field(default=(), repr=False)


@dataclass
class _Group:
    size_bytes: int = 0
    changed: datetime = _LONG_AGO
    keys: list[str] = field(default_factory=list)


def find_unused(
    environment: Environment, references: References, access: Access, now: datetime
) -> list[Unused]:
    """Returns what is older than a day and has no reference, by kind and name."""
    before = now - LEAST_AGE
    mentioned = "\n".join(references.texts)
    found = list(_old_images(before, environment, references, mentioned, access))
    # Images outlive an environment whose bucket is gone.
    with _without_bucket():
        found += _old_objects(before, environment.artifact_bucket, references, mentioned, access)
    return sorted(found, key=lambda item: (item.kind, item.name))


@contextlib.contextmanager
def _without_bucket() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise


def _old_objects(
    before: datetime, bucket: str, references: References, mentioned: str, access: Access
) -> list[Unused]:
    s3 = access.client("s3")
    artifacts, outputs = _groups(s3, bucket)

    def settings_of(digest: str) -> Sequence[str]:
        return [
            s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode(errors="replace")
            for prefix, group in artifacts.items()
            if f"/{digest}/" in f"/{prefix}"
            for key in group.keys
            if is_settings_file(key)
        ]

    digests = with_packages(references.digests, settings_of)
    return [
        *_old(
            before, "artifact", bucket, artifacts, lambda prefix: prefix.split("/")[-2] in digests
        ),
        *_old(
            before,
            "compile output",
            bucket,
            outputs,
            lambda prefix: prefix.split("/")[-2] in mentioned,
        ),
        *_old_uploads(before, bucket, s3),
    ]


def delete(item: Unused, environment: Environment, access: Access) -> list[str]:
    """Deletes something unused; returns why parts of it could not be deleted.

    The manifest of an artifact goes first: what a stop leaves does not count as published.
    """
    s3, bucket = access.client("s3"), environment.artifact_bucket
    if item.kind == "unfinished upload":
        key, upload_id = item.parts
        s3.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)
        return []
    if item.kind == "image":
        repository, tag = item.parts
        answer = access.client("ecr").batch_delete_image(
            repositoryName=repository, imageIds=[{"imageTag": tag}]
        )
        return [each["failureReason"] for each in answer.get("failures", ())]
    problems: list[str] = []
    for start in range(0, len(item.parts), _MOST_OBJECTS):
        keys = item.parts[start : start + _MOST_OBJECTS]
        answer = s3.delete_objects(
            Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
        )
        problems += [f"{each['Key']}: {each['Message']}" for each in answer.get("Errors", ())]
    return problems


def _groups(s3: Any, bucket: str) -> tuple[dict[str, _Group], dict[str, _Group]]:
    """Returns the bucket's artifacts and outputs of jobs by their prefixes."""
    artifacts: dict[str, _Group] = {}
    outputs: dict[str, _Group] = {}
    for item in paged(s3, "list_objects_v2", "Contents", Bucket=bucket):
        for groups, pattern in ((artifacts, _ARTIFACT), (outputs, _OUTPUT)):
            if match := pattern.match(item["Key"]):
                group = groups.setdefault(match[0], _Group())
                group.size_bytes += item["Size"]
                group.changed = max(group.changed, item["LastModified"])
                group.keys.append(item["Key"])
    return artifacts, outputs


def _old(
    before: datetime,
    kind: str,
    bucket: str,
    groups: dict[str, _Group],
    is_used: Callable[[str], bool],
) -> Iterator[Unused]:
    for prefix, group in groups.items():
        if group.changed < before and not is_used(prefix):
            manifest = f"{prefix}manifest.json"
            keys = sorted(group.keys, key=lambda key: (key != manifest, key))
            yield Unused(
                kind, f"s3://{bucket}/{prefix}", group.size_bytes, group.changed, tuple(keys)
            )


def _old_uploads(before: datetime, bucket: str, s3: Any) -> Iterator[Unused]:
    for item in paged(s3, "list_multipart_uploads", "Uploads", Bucket=bucket):
        if item["Initiated"] < before:
            yield Unused(
                "unfinished upload",
                f"s3://{bucket}/{item['Key']}",
                None,
                item["Initiated"],
                (item["Key"], item["UploadId"]),
            )


def _old_images(
    before: datetime,
    environment: Environment,
    references: References,
    mentioned: str,
    access: Access,
) -> Iterator[Unused]:
    ecr = access.client("ecr")
    for repository in paged(ecr, "describe_repositories", "repositories"):
        name = repository["repositoryName"]
        # A project without a name has no slash behind its prefix.
        family = name.removeprefix(environment.repository_prefix)
        if family == name or "/" in family:
            continue
        for image in paged(ecr, "describe_images", "imageDetails", repositoryName=name):
            if image["imagePushedAt"] < before and image["imageDigest"] not in mentioned:
                yield from _tags(name, image, references.fingerprints, mentioned)


def _tags(
    repository: str, image: dict[str, Any], fingerprints: Iterable[str], mentioned: str
) -> Iterator[Unused]:
    for tag in image.get("imageTags", ()):
        is_of_a_ref = any(fingerprint in tag for fingerprint in fingerprints)
        if not is_of_a_ref and f"{repository}:{tag}" not in mentioned:
            yield Unused(
                "image",
                f"{repository}:{tag}",
                image["imageSizeInBytes"],
                image["imagePushedAt"],
                (repository, tag),
            )
