"""An address in S3, taken apart."""

from typing import NamedTuple, Self


class S3Address(NamedTuple):
    """An object in S3, or a prefix of objects; an empty key is the whole bucket."""

    bucket: str
    key: str

    @classmethod
    def of(cls, uri: str) -> Self:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        return cls(bucket, key)

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.key}"
