"""The artifact bucket, by content address."""

import contextlib
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from slipway.access import Access, existing
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import Kind, Problem, UserError
from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.lock import LockedPart
from slipway.publishing.manifest import Manifest, ManifestEntry, long_keys, named
from slipway.publishing.progress import Progress
from slipway.publishing.recipes import Recipe
from slipway.publishing.stored import ANOTHER_VERSION, StoredObject, compare, listed, seal
from slipway.publishing.write_once import lies_there, write_once

# Half of the age from which `slipway prune` deletes.
_RENEWED_AFTER = timedelta(hours=12)
# In the metadata of a manifest: the seal of the files that were right when it was written.
SEAL = "files"
# Each try loses to a publish of the same artifact.
_MANIFEST_TRIES = 5
STAGED_WORKERS = 32
"""Copies of staged files at once: none of them comes through memory."""
_CLIENT_CONFIG = Config(
    max_pool_connections=STAGED_WORKERS,
    # S3 answers the copy of a part of 5 GiB once it has copied the part.
    read_timeout=900,
)


class ArtifactStore:
    """What is in one environment's bucket.

    An artifact is `artifacts/DIGEST/files/...` and, written last, `artifacts/DIGEST/manifest.json`
    beside them: without the manifest the artifact does not count as published. The manifest's
    metadata has the seal of the files, which one listing is compared with. `recipes/KEY.json`
    says which artifact was made of which inputs. An isolated model's artifacts are under
    `models/NAME/`, and encrypted with the model's key. What s5cmd sends lies under `incoming/`
    until it is copied into its artifact.

    Files are written once: each write asks S3 to refuse where something lies, and the bucket's
    policy refuses any write that does not ask.

    Every method raises `UserError` where the bucket does not answer or refuses.
    `key_arn` is what encrypts them, where that is not the key that the bucket uses by itself. With
    `verify`, every byte is read, whatever S3 says of the objects.
    """

    def __init__(
        self,
        access: Access,
        environment: Environment,
        place: ArtifactPlace,
        progress: Progress,
        *,
        verify: bool = False,
    ) -> None:
        self.access = access
        self.client = access.client("s3", _CLIENT_CONFIG)
        write_once(self.client, place.artifacts_prefix)
        self.progress = progress
        self._verify = verify
        # Versions of objects whose content was compared: each is read once.
        self._right: set[tuple[str, str]] = set()
        self._environment = environment
        self.place = place
        self.key_arn: str | None = None
        self.bucket = place.bucket

    def require_bucket(self) -> None:
        """Raises `UserError`, with the command that makes the bucket, unless it is there."""
        call, arguments = self.client.head_bucket, dict[str, Any]()
        if self.place.is_isolated:
            # The publisher of an isolated model may list its keys and no others.
            call = self.client.list_objects_v2
            arguments = {"Prefix": self.place.root, "MaxKeys": 1}
        with self.reached():
            found = existing(call, "404", "NoSuchBucket", Bucket=self.bucket, **arguments)
        if found is None:
            raise UserError.of(
                Code.FOUNDATION_MISSING,
                f"the artifact bucket {self.bucket} is not there",
                f"Run `cdk deploy foundation -c env={self._environment.name}` first.",
            )

    def holds(self, digest: str, contents: Manifest | None = None) -> bool:
        """Returns whether an artifact is in the bucket, with all its files and no others.

        As long as the listing has the same seal, no object was written or deleted since the
        artifact was complete. Otherwise the content of each is compared.

        The manifest of an artifact that is published again is made young again: `slipway prune`
        deletes nothing that was published in the last day. `contents` has its files as they are
        sent, if they differ from the manifest's.
        """
        place = {"Bucket": self.bucket, "Key": self.place.manifest_key(digest)}
        with self.reached():
            found = existing(self.client.head_object, "404", "NoSuchKey", **place)
        if found is None:
            return False
        if (problem := other_key(self.place, digest, found, self.key_arn)) is not None:
            raise UserError([problem])
        objects = self._listed(digest)
        is_sealed = found["Metadata"].get(SEAL) == seal(objects)
        is_young = datetime.now(UTC) - found["LastModified"] <= _RENEWED_AFTER
        if is_sealed and is_young and not self._verify:
            return True
        with self.reached():
            body = self.client.get_object(**place)["Body"].read()
        if hashlib.sha256(body).hexdigest() != digest:
            return False
        if not is_sealed or self._verify:
            wrong = self._wrong(contents or Manifest.read(body), objects)
            if wrong:
                self.progress.note(f"Damaged in {self.bucket} since: {named(wrong)}.")
                return False
        if not (is_sealed and is_young):
            self._write_manifest(digest, body, objects)
        return True

    def _write_manifest(
        self, digest: str, body: bytes, objects: Mapping[str, StoredObject]
    ) -> None:
        place = {"Bucket": self.bucket, "Key": self.place.manifest_key(digest)}
        with self.reached():
            for tries_left in reversed(range(_MANIFEST_TRIES)):
                found = existing(self.client.head_object, "404", "NoSuchKey", **place)
                try:
                    self.client.put_object(
                        **place,
                        # The same bytes, with another date and seal.
                        **({} if found is None else {"IfMatch": found["ETag"]}),
                        Body=body,
                        ContentType="application/json",
                        Metadata={SEAL: seal(objects)},
                        **self.encryption,
                    )
                    return
                except ClientError as error:
                    if not (tries_left and lies_there(error)):
                        raise

    def _listed(self, digest: str) -> dict[str, StoredObject]:
        with self.reached():
            return listed(self.client, self.bucket, self.place.files_prefix(digest))

    def missing(self, digest: str, contents: Manifest) -> list[ManifestEntry]:
        """Returns the files that have to be sent: what arrived with the right content does not.

        Raises `UserError` if keys would be longer than S3 allows, or objects with other content lie
        there.
        """
        if too_long := long_keys(self.place.files_prefix(digest), contents):
            raise UserError(too_long)
        objects = self._listed(digest)
        wrong = set(self._wrong(contents, objects))
        if in_the_way := sorted(wrong & set(objects)):
            raise UserError([self._differs(digest, in_the_way)])
        return [entry for entry in contents.entries if entry.path in wrong]

    def _wrong(
        self,
        contents: Manifest,
        objects: Mapping[str, StoredObject],
        trusted: Collection[str] = (),
    ) -> list[str]:
        """Returns the paths that are missing, have other content, or do not belong.

        Of what is in `trusted`, only the size is compared.
        """
        wrong = set(objects) - {entry.path for entry in contents.entries}
        doubtful: list[tuple[StoredObject, str]] = []
        for entry in contents.entries:
            item = objects.get(entry.path)
            if item is None or item.size_bytes != entry.size_bytes:
                wrong.add(entry.path)
            elif entry.path not in trusted and (item.key, item.etag) not in self._right:
                doubtful.append((item, entry.sha256))
        with self.reached():
            right = compare(self.client, self.bucket, doubtful, self.progress, reads=self._verify)
        self._right |= {(item.key, item.etag) for item in right}
        return sorted(wrong | {item.path for item, _ in doubtful if item not in right})

    def staging_prefix(self, digest: str) -> str:
        """Returns the key prefix that s5cmd sends the files of an artifact to."""
        return f"{self.place.incoming_prefix}{digest}/"

    def staged(self, digest: str) -> dict[str, StoredObject]:
        """Returns the files that s5cmd sent for an artifact, by path; they are kept for a day."""
        with self.reached():
            return listed(self.client, self.bucket, self.staging_prefix(digest))

    def address(self, digest: str, path: str) -> str:
        return f"{self.place.files_uri(digest)}{path}"

    def copy_in(
        self,
        digest: str,
        path: str,
        *,
        source: Mapping[str, str],
        etag: str,
        source_client: Any,
        config: TransferConfig,
    ) -> bool:
        """Copies one file of an artifact from elsewhere in S3; returns False if one lay there.

        It is copied only as long as `etag` is its ETag. Raises S3's answer: which side it is about
        is the caller's to say.
        """
        key = f"{self.place.files_prefix(digest)}{path}"
        try:
            self.client.copy(
                dict(source),
                self.bucket,
                key,
                ExtraArgs={
                    "CopySourceIfMatch": etag,
                    # Its tags do not belong to Slipway, and reading them would need one more right.
                    "TaggingDirective": "REPLACE",
                    # Its checksum may be one of parts that the copy does not have.
                    "ChecksumAlgorithm": "CRC32",
                    **self.encryption,
                },
                SourceClient=source_client,
                Config=config,
            )
        except ClientError as error:
            # S3 says the same of a source that was replaced.
            there = {"Bucket": self.bucket, "Key": key}
            if lies_there(error) and existing(self.client.head_object, "404", **there):
                return False
            raise
        return True

    def commit(
        self, manifest: Manifest, contents: Manifest | None = None, *, sent: Collection[str] = ()
    ) -> None:
        """Checks that every file has arrived as it should and writes the manifest.

        `contents` has its files as they are sent, if they differ from the manifest's. Of the paths
        in `sent` the sources were as before after this run sent them. Raises `UserError` if
        something is missing, differs, or is too much.
        """
        objects = self._listed(manifest.digest)
        wrong = self._wrong(contents or manifest, objects, () if self._verify else sent)
        if wrong:
            raise UserError([self._differs(manifest.digest, wrong)])
        self._write_manifest(manifest.digest, manifest.render(), objects)

    def _differs(self, digest: str, paths: Sequence[str]) -> Problem:
        address = self.address(digest, paths[0])
        return Problem(
            Code.ARTIFACT_DIFFERS,
            Kind.STATE,
            f"the artifact in {self.bucket} differs from the one sent, in: {named(paths)}",
            "No object of an artifact is overwritten. Delete each that is named, for example with "
            f"`aws s3 rm '{address}'`, and run the command again.",
        )

    def recall(self, recipe: Recipe) -> LockedPart | None:
        """Returns what a recipe gave before; None where it was never made, or is gone."""
        made = self.recorded(recipe)
        return made if made is not None and self.holds(made.digest) else None

    def recorded(self, recipe: Recipe) -> LockedPart | None:
        """Returns what a recipe gave before, even if it is gone; None without a record."""
        place = {"Bucket": self.bucket, "Key": self._key(recipe)}
        with self.reached():
            found = existing(self.client.get_object, "NoSuchKey", **place)
            return None if found is None else recipe.read(found["Body"].read())

    def remember(self, recipe: Recipe, made: LockedPart) -> None:
        """Notes what a recipe gave; the artifact must have been committed."""
        with self.reached():
            self.client.put_object(
                Bucket=self.bucket,
                Key=self._key(recipe),
                Body=recipe.record(made),
                ContentType="application/json",
                **self.encryption,
            )

    def _key(self, recipe: Recipe) -> str:
        return f"{self.place.recipes_prefix}{recipe.key}.json"

    @property
    def encryption(self) -> dict[str, str]:
        """Returns a request's members for the key; empty if the bucket's own key is used."""
        if self.key_arn is None:
            return {}
        return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": self.key_arn}

    @contextlib.contextmanager
    def reached(self) -> Iterator[None]:
        """Turns errors of the bucket's answers into `UserError`."""
        try:
            yield
        except (BotoCoreError, ClientError) as error:
            answer = error.response if isinstance(error, ClientError) else None
            status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) if answer else 0
            # S3's own trouble is like the network's, and so is an object that is gone or replaced:
            # credentials do not cure it.
            if answer and status < 500 and answer["Error"]["Code"] not in ANOTHER_VERSION:
                raise UserError.of(
                    Code.BUCKET_DENIED,
                    f"the artifact bucket {self.bucket} cannot be reached: "
                    f"{answer['Error']['Code']}",
                    f"Use credentials of account {self._environment.account} that may read and "
                    "write the bucket.",
                ) from None
            raise UserError.of(
                Code.UPLOAD_FAILED,
                f"the artifact bucket {self.bucket} does not answer: {error}",
                "Run the command again once it does: what has arrived is not sent twice.",
            ) from None


def other_key(
    place: ArtifactPlace, digest: str, found: Mapping[str, Any], key_arn: str | None
) -> Problem | None:
    """Returns what is wrong where an isolated artifact has another key than its place.

    The model's role may decrypt with the place's key alone, so the endpoint could not start.
    `found` is HeadObject's answer about the manifest. Without `key_arn` the bucket encrypts by
    itself.
    """
    used = found.get("SSEKMSKeyId")
    if key_arn is None or used == key_arn:
        return None
    address = f"s3://{place.bucket}/{place.artifacts_prefix}{digest}/"
    remedy = f"Delete the objects under {address} and run `slipway publish` again."
    if used is not None:
        remedy = (
            f"Set `artifacts.key_arn` to {used} and run `cdk deploy {place.stack_id}`, or delete "
            f"the objects under {address} and run `slipway publish` again."
        )
    return Problem(
        Code.ARTIFACT_KEY,
        Kind.STATE,
        f"the artifact {address} is encrypted with {used or 'no key of KMS'}, and the key of the "
        f"model is now {key_arn}",
        remedy,
        ("artifacts", "isolated"),
    )
