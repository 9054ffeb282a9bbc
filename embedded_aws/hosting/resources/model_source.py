"""The place of a container's model data in S3."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from slipway.embedded_aws.iam.s3_access import RoleAccess


@dataclass(frozen=True)
class ModelSource:
    """The place of a container's model data.

    Attributes:
        key: object key, or prefix with its final slash.
        is_prefix: whether every object under `key` is meant.
        is_archive: whether the object is a gzip-compressed tar.
    """

    uri: str
    bucket: str
    key: str
    is_prefix: bool
    is_archive: bool

    @classmethod
    def of(cls, container: Mapping[str, Any]) -> "ModelSource | None":
        """Returns the source of a ContainerDefinition; None if it has no model data."""
        if container.get("ModelDataUrl"):
            return cls._parse(container["ModelDataUrl"], is_prefix=False, is_archive=True)
        source = container.get("ModelDataSource", {}).get("S3DataSource")
        if source is None:
            return None
        return cls._parse(
            source["S3Uri"],
            is_prefix=source["S3DataType"] == "S3Prefix",
            is_archive=source["CompressionType"] == "Gzip",
        )

    @classmethod
    def _parse(cls, uri: str, *, is_prefix: bool, is_archive: bool) -> "ModelSource":
        parts = urlsplit(uri)
        if parts.scheme == "s3":
            bucket, key = parts.netloc, parts.path.removeprefix("/")
        else:
            # https://s3.REGION.amazonaws.com/BUCKET/KEY or https://BUCKET.s3.REGION...
            host, path = parts.netloc, parts.path.removeprefix("/")
            if host.startswith("s3"):
                bucket, _, key = path.partition("/")
            else:
                bucket, key = host.partition(".")[0], path
        return cls(uri, bucket, key, is_prefix, is_archive)

    def require_access(self, access: RoleAccess) -> None:
        """Raises `ClientError` if a role may not list the model data, or read one object of it."""
        key: str | None = self.key
        if self.is_prefix:
            key = next(access.keys(self.bucket, self.key), None)
        if key is not None:
            access.require_readable(self.bucket, key)

    def exists(self, s3: Any) -> bool:
        try:
            if not self.is_prefix:
                s3.head_object(Bucket=self.bucket, Key=self.key)
                return True
            listing = s3.list_objects_v2(Bucket=self.bucket, Prefix=self.key, MaxKeys=1)
        except ClientError:
            return False
        return bool(listing.get("Contents"))
