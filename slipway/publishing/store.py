"""The artifact bucket, by content address."""

import contextlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import BotoCoreError, ClientError

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import Kind, Problem, UserError
from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.lock import LockedPart
from slipway.publishing.manifest import Manifest
from slipway.publishing.recipes import Recipe

# Half of the age from which `slipway prune` deletes.
_RENEWED_AFTER = timedelta(hours=12)


class ArtifactStore:
    """What is in one environment's bucket.

    An artifact is `artifacts/DIGEST/files/...` and, written last, `artifacts/DIGEST/manifest.json`
    beside them: without the manifest the artifact does not count as published. `recipes/KEY.json`
    says which artifact was made of which inputs. An isolated model's artifacts are under
    `models/NAME/`, and encrypted with the model's key.

    Every method raises `UserError` where the bucket does not answer or refuses.

    Args:
        client: boto3's S3 client.
        environment: owns the bucket.
        place: bucket, prefix and key of the artifacts.
        key_arn: what encrypts them, where that is not the key that the bucket uses by itself.
    """

    def __init__(
        self,
        client: Any,
        environment: Environment,
        place: ArtifactPlace,
        key_arn: str | None = None,
    ) -> None:
        self.client = client
        self._environment = environment
        self.place = place
        self.key_arn = key_arn
        self.bucket = place.bucket

    def require_bucket(self) -> None:
        """Checks that the bucket is there.

        Raises:
            UserError: it is not, with the command that makes it.
        """
        with self.reached():
            try:
                if self.place.is_isolated:
                    # The publisher of an isolated model may list its keys and no others.
                    self.client.list_objects_v2(
                        Bucket=self.bucket, Prefix=self.place.root, MaxKeys=1
                    )
                else:
                    self.client.head_bucket(Bucket=self.bucket)
            except ClientError as error:
                if error.response["Error"]["Code"] not in ("404", "NoSuchBucket"):
                    raise
                raise UserError.of(
                    Code.FOUNDATION_MISSING,
                    f"the artifact bucket {self.bucket} is not there",
                    f"Run `cdk deploy foundation -c env={self._environment.name}` first.",
                ) from None

    def holds(self, digest: str) -> bool:
        """Returns whether an artifact is complete in the bucket.

        The manifest of an artifact that is published again is made young again: `slipway prune`
        deletes nothing that was published in the last day.
        """
        with self.reached():
            try:
                found = self.client.head_object(
                    Bucket=self.bucket, Key=self.place.manifest_key(digest)
                )
            except ClientError as error:
                if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
                    return False
                raise
        if (problem := other_key(self.place, digest, found, self.key_arn)) is not None:
            raise UserError([problem])
        if datetime.now(UTC) - found["LastModified"] > _RENEWED_AFTER:
            self._renew(digest)
        return True

    def _renew(self, digest: str) -> None:
        key = self.place.manifest_key(digest)
        with self.reached():
            manifest = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
            self._write_manifest(digest, manifest)

    def _write_manifest(self, digest: str, content: bytes) -> None:
        self.client.put_object(
            Bucket=self.bucket,
            Key=self.place.manifest_key(digest),
            Body=content,
            ContentType="application/json",
            **self.encryption,
        )

    def file_sizes(self, digest: str) -> dict[str, int]:
        """Returns the files of an artifact that have arrived: path to size in bytes."""
        prefix = self.place.files_prefix(digest)
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        with self.reached():
            return {
                item["Key"].removeprefix(prefix): item["Size"]
                for page in pages
                for item in page.get("Contents", ())
            }

    def address(self, digest: str, path: str) -> str:
        """Returns the S3 address of one file of an artifact."""
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
    ) -> None:
        """Copies one file of an artifact from elsewhere in S3.

        Args:
            digest: the artifact.
            path: the file within it.
            source: bucket and key of what is copied.
            etag: it is copied only as long as this is its ETag.
            source_client: boto3's S3 client for its bucket.
            config: from which size on it is copied in parts.

        Raises:
            ClientError, BotoCoreError: S3's answer; which side it is about is the caller's to say.
        """
        self.client.copy(
            dict(source),
            self.bucket,
            f"{self.place.files_prefix(digest)}{path}",
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

    def commit(self, manifest: Manifest, sizes_bytes: Mapping[str, int] | None = None) -> None:
        """Checks that every file has arrived in full and writes the manifest.

        Args:
            manifest: what the artifact holds.
            sizes_bytes: of each file as it was sent, where that is not the manifest's.

        Raises:
            UserError: something is missing, short or too much.
        """
        expected = sizes_bytes or {entry.path: entry.size_bytes for entry in manifest.entries}
        found = self.file_sizes(manifest.digest)
        if found != expected:
            wrong = sorted(set(found.items()) ^ set(expected.items()))
            names = ", ".join(sorted({path for path, _ in wrong}))
            raise UserError.of(
                Code.ARTIFACT_DIFFERS,
                f"the artifact in {self.bucket} differs from the one sent, in: {names}",
                "Somebody else wrote there. Run the command again; delete files that do not "
                "belong.",
            )
        with self.reached():
            self._write_manifest(manifest.digest, manifest.render())

    def recall(self, recipe: Recipe) -> LockedPart | None:
        """Returns what a recipe gave before; None where it was never made, or is gone."""
        made = self.recorded(recipe)
        return made if made is not None and self.holds(made.digest) else None

    def recorded(self, recipe: Recipe) -> LockedPart | None:
        """Returns what a recipe gave before, even if it is gone; None without a record."""
        with self.reached():
            try:
                body = self.client.get_object(Bucket=self.bucket, Key=self._key(recipe))["Body"]
                return recipe.read(body.read())
            except ClientError as error:
                if error.response["Error"]["Code"] != "NoSuchKey":
                    raise
                return None

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
            # S3's own trouble is like the network's: credentials do not cure it.
            if answer and answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) < 500:
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

    Args:
        place: where the artifact is.
        digest: content address of the artifact.
        found: HeadObject's answer about its manifest.
        key_arn: the key of the place; None where the bucket encrypts by itself.
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
