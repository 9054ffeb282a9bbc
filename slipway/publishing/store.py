"""The artifact bucket, by content address."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.planning.plan import artifact_prefix
from slipway.publishing.manifest import Manifest


class ArtifactStore:
    """What is in one environment's bucket.

    An artifact is `artifacts/DIGEST/files/...` and, written last, `artifacts/DIGEST/manifest.json`
    beside them: without the manifest the artifact does not count as published.

    Every method raises `UserError` where the bucket does not answer or refuses.

    Args:
        client: boto3's S3 client.
        environment: whose bucket.
    """

    def __init__(self, client: Any, environment: Environment) -> None:
        self._client = client
        self._environment = environment
        self.bucket = environment.artifact_bucket

    def require_bucket(self) -> None:
        """Checks that the bucket is there.

        Raises:
            UserError: it is not, with the command that makes it.
        """
        with self._reached():
            try:
                self._client.head_bucket(Bucket=self.bucket)
            except ClientError as error:
                if error.response["Error"]["Code"] not in ("404", "NoSuchBucket"):
                    raise
                raise UserError.of(
                    f"the artifact bucket {self.bucket} is not there",
                    f"Run `cdk deploy foundation -c env={self._environment.name}` first.",
                ) from None

    def holds(self, digest: str) -> bool:
        """Whether an artifact is there as a whole."""
        with self._reached():
            try:
                self._client.head_object(
                    Bucket=self.bucket, Key=f"{artifact_prefix(digest)}manifest.json"
                )
            except ClientError as error:
                if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
                    return False
                raise
        return True

    def file_sizes(self, digest: str) -> dict[str, int]:
        """Returns the files of an artifact that have arrived: path to size in bytes."""
        prefix = f"{artifact_prefix(digest)}files/"
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        with self._reached():
            return {
                item["Key"].removeprefix(prefix): item["Size"]
                for page in pages
                for item in page.get("Contents", ())
            }

    def address(self, digest: str, path: str) -> str:
        """S3 address of one file of an artifact."""
        return f"s3://{self.bucket}/{artifact_prefix(digest)}files/{path}"

    def commit(self, manifest: Manifest) -> None:
        """Checks that every file has arrived in full and writes the manifest.

        Raises:
            UserError: something is missing, short or too much.
        """
        expected = {entry.path: entry.size_bytes for entry in manifest.entries}
        found = self.file_sizes(manifest.digest)
        if found != expected:
            wrong = sorted(set(found.items()) ^ set(expected.items()))
            names = ", ".join(sorted({path for path, _ in wrong}))
            raise UserError.of(
                f"the artifact in {self.bucket} differs from the one sent, in: {names}",
                "Somebody else wrote there. Run the command again; delete files that do not "
                "belong.",
            )
        with self._reached():
            self._client.put_object(
                Bucket=self.bucket,
                Key=f"{artifact_prefix(manifest.digest)}manifest.json",
                Body=manifest.render(),
                ContentType="application/json",
            )

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        """Reports what keeps the bucket from answering as the user's to put right."""
        try:
            yield
        except (BotoCoreError, ClientError) as error:
            answer = error.response if isinstance(error, ClientError) else None
            # S3's own trouble is like the network's: credentials do not cure it.
            if answer and answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) < 500:
                raise UserError.of(
                    f"the artifact bucket {self.bucket} cannot be reached: "
                    f"{answer['Error']['Code']}",
                    f"Use credentials of account {self._environment.account} that may read and "
                    "write the bucket.",
                ) from None
            raise UserError.of(
                f"the artifact bucket {self.bucket} does not answer: {error}",
                "Run the command again once it does: what has arrived is not sent twice.",
            ) from None
