"""AsyncInferenceConfig of an endpoint configuration, and the places in S3 that it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_S3_URI = re.compile(r"s3://(?P<bucket>[^/]+)/(?P<key>.*)")


@dataclass(frozen=True)
class S3Location:
    bucket: str
    key: str

    @classmethod
    def of(cls, uri: str) -> S3Location:
        """Reads s3://BUCKET/KEY; raises `ValueError` for another form, such as https://."""
        match = _S3_URI.fullmatch(uri)
        if match is None:
            raise ValueError(f"The embedded AWS reads s3://BUCKET/KEY only, not {uri}.")
        return cls(match["bucket"], match["key"])

    def below(self, name: str) -> S3Location:
        prefix = self.key.rstrip("/")
        return S3Location(self.bucket, f"{prefix}/{name}" if prefix else name)

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True)
class AsyncSettings:
    """AsyncInferenceConfig of an endpoint configuration.

    Attributes:
        failure: prefix of the failures; None for no objects.
        key_id: KMS key that encrypts both; None for the bucket's own.
        with_response: the topics whose messages carry the container's answer, by the API's names.
        concurrency: requests that one instance computes at a time.
    """

    output: S3Location
    failure: S3Location | None
    key_id: str | None
    success_topic: str | None
    error_topic: str | None
    with_response: tuple[str, ...]
    concurrency: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> AsyncSettings:
        """Reads AsyncInferenceConfig; raises `ValueError` for a setting that is not emulated."""
        output = config["OutputConfig"]
        notification = output.get("NotificationConfig", {})
        if "S3OutputPath" not in output:
            raise ValueError("The embedded AWS needs an S3OutputPath.")
        failure = output.get("S3FailurePath")
        return cls(
            output=S3Location.of(output["S3OutputPath"]),
            failure=S3Location.of(failure) if failure else None,
            key_id=output.get("KmsKeyId"),
            success_topic=notification.get("SuccessTopic"),
            error_topic=notification.get("ErrorTopic"),
            with_response=tuple(notification.get("IncludeInferenceResponseIn", ())),
            # The API names no default: "If no value is provided, SageMaker chooses an optimal
            # value". One at a time is the most careful choice.
            concurrency=config.get("ClientConfig", {}).get(
                "MaxConcurrentInvocationsPerInstance", 1
            ),
        )
