"""What an environment keeps in S3 and ECR although nothing refers to it, and its deletion.

Everything that looks like a digest counts as a reference. A text that is misread then keeps too
much, never too little.
"""

import json
import re
import tempfile
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import ClientError

from slipway.access import Access, paged
from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.git import commit_of, find_commit, git, unpack
from slipway.image_sources import IMAGE_SOURCES, image_digest
from slipway.planning.artifact_place import OUTPUT_PREFIX

_DIGEST: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_CONFIGS: Final = "model_configs"
_LOCKS: Final = "*.lock.json"
# Where the sources of Slipway's images are.
_SOURCES: Final = "containers"
_ENVIRONMENT_TAG: Final = "slipway:environment"
_SETTINGS_FILE: Final = "serving.properties"


@dataclass(frozen=True)
class References:
    """What may not be deleted.

    `texts` are of the account's resources; what they name stays. `fingerprints` are of the sources
    of images, which the tags of their images end with. `refs` are those whose locks and sources
    were read; empty outside a git repository.
    """

    digests: frozenset[str]
    texts: Sequence[str]
    fingerprints: frozenset[str]
    refs: Sequence[str]


def find_references(root: Path, refs: Sequence[str], access: Access) -> References:
    """Finds everything that refers to artifacts and images.

    Without refs, every ref of the repository is read. The files of the working tree always count.
    Raises `UserError` if a ref does not exist.
    """
    read = list(refs) or _all_refs(root)
    commits = {commit_of(root, ref) for ref in read}
    texts = list(_account_texts(access))
    locks = [path.read_text("utf-8") for path in sorted(root.glob(f"{_CONFIGS}/{_LOCKS}"))]
    locks += [text for tree in _trees(root, commits, _CONFIGS) for text in _locks_in(root, tree)]
    fingerprints = set(_fingerprints(root))
    for tree in _trees(root, commits, _SOURCES):
        with tempfile.TemporaryDirectory(prefix="slipway-ref-") as temporary:
            unpack(root, tree, Path(temporary, _SOURCES))
            fingerprints.update(_fingerprints(Path(temporary)))
    return References(
        digests=frozenset(each for text in (*locks, *texts) for each in _DIGEST.findall(text)),
        texts=texts,
        fingerprints=frozenset(fingerprints),
        refs=read,
    )


def _account_texts(access: Access) -> Iterator[str]:
    """Yields the JSON of each resource that may refer to an artifact or an image."""
    sagemaker, cloudformation = access.client("sagemaker"), access.client("cloudformation")
    for item in paged(sagemaker, "list_models", "Models"):
        yield _text(sagemaker.describe_model(ModelName=item["ModelName"]))
    for status in ("InProgress", "Stopping"):
        jobs = paged(sagemaker, "list_training_jobs", "TrainingJobSummaries", StatusEquals=status)
        for item in jobs:
            yield _text(sagemaker.describe_training_job(TrainingJobName=item["TrainingJobName"]))
    for stack in paged(cloudformation, "describe_stacks", "Stacks"):
        if any(tag["Key"] == _ENVIRONMENT_TAG for tag in stack.get("Tags", ())):
            # With the parameters and outputs; the template has the properties.
            yield _text(stack)
            yield _text(cloudformation.get_template(StackName=stack["StackId"])["TemplateBody"])


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, default=str)


def _all_refs(root: Path) -> list[str]:
    if git(root, "rev-parse", "--git-dir").returncode != 0:
        return []
    listed = git(root, "for-each-ref", "--format=%(refname)").stdout.decode().split()
    return [*(["HEAD"] if find_commit(root, "HEAD") else []), *listed]


def _trees(root: Path, commits: Iterable[str], folder: str) -> set[str]:
    """Returns a folder's different states in commits, which are far fewer than the commits."""
    # With `./`, git looks in the project, which may be a folder of a repository.
    found = (git(root, "rev-parse", "--verify", f"{each}:./{folder}") for each in commits)
    return {done.stdout.decode().strip() for done in found if done.returncode == 0}


def _locks_in(root: Path, tree: str) -> Iterator[str]:
    listed = git(root, "ls-tree", "-z", "--full-tree", "--name-only", tree).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if Path(name).match(_LOCKS):
            yield git(root, "show", f"{tree}:{name}").stdout.decode()


def _fingerprints(root: Path) -> Iterator[str]:
    for family in IMAGE_SOURCES:
        try:
            yield image_digest(root, family)
        except UserError:
            # An older commit has no sources of this image.
            continue


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
    try:
        found += _old_objects(before, environment.artifact_bucket, references, mentioned, access)
    except ClientError as error:
        # Images outlive an environment whose bucket is gone.
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise
    return sorted(found, key=lambda item: (item.kind, item.name))


def _old_objects(
    before: datetime, bucket: str, references: References, mentioned: str, access: Access
) -> list[Unused]:
    s3 = access.client("s3")
    artifacts, outputs = _groups(s3, bucket)
    digests = set(references.digests)
    for prefix, group in artifacts.items():
        for key in group.keys if prefix.split("/")[-2] in references.digests else ():
            # An LMI package is an artifact whose serving.properties says where the weights are.
            if key.rpartition("/")[2] == _SETTINGS_FILE:
                content = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
                digests.update(_DIGEST.findall(content.decode(errors="replace")))
    return [
        *_old(before, "artifact", bucket, artifacts, digests),
        *_old(before, "compile output", bucket, outputs, mentioned),
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
    before: datetime, kind: str, bucket: str, groups: dict[str, _Group], used: Container[str]
) -> Iterator[Unused]:
    for prefix, group in groups.items():
        if group.changed < before and prefix.split("/")[-2] not in used:
            manifest = f"{prefix}manifest.json"
            keys = sorted(group.keys, key=lambda key: (key != manifest, key))
            yield Unused(
                kind, f"s3://{bucket}/{prefix}", group.size_bytes, group.changed, tuple(keys)
            )


def _old_uploads(before: datetime, bucket: str, s3: Any) -> Iterator[Unused]:
    for item in paged(s3, "list_multipart_uploads", "Uploads", Bucket=bucket):
        if item["Initiated"] < before:
            name, parts = f"s3://{bucket}/{item['Key']}", (item["Key"], item["UploadId"])
            yield Unused("unfinished upload", name, None, item["Initiated"], parts)


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
        name, size = f"{repository}:{tag}", image["imageSizeInBytes"]
        if not any(each in tag for each in fingerprints) and name not in mentioned:
            yield Unused("image", name, size, image["imagePushedAt"], (repository, tag))
