"""Data capture: requests and answers of an endpoint as JSON lines in S3.

The layout and the records are as AWS documents them:
https://docs.aws.amazon.com/sagemaker/latest/dg/model-monitor-data-capture-endpoint.html (read
2026-11-24). AWS takes a couple of minutes until records are in S3, and here it is a second. Of a
request that fails, and of a streamed answer, nothing is captured.
"""

import base64
import json
import logging
import random
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from slipway.embedded_aws.api import without_none
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.iam.s3_access import RoleAccess
from slipway.embedded_aws.periodic import Periodic

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS = 1.0
_INPUT, _OUTPUT, _BOTH = "Input", "Output", "InputAndOutput"


@dataclass(frozen=True)
class CaptureConfig:
    """The DataCaptureConfig of an endpoint configuration, where capture is enabled.

    Attributes:
        percent: share of the requests.
        modes: of `Input` and `Output`.
        key_id: KMS key of the objects; None for the bucket's own encryption.
    """

    uri: str
    percent: int
    modes: frozenset[str]
    key_id: str | None
    json_types: tuple[str, ...]
    csv_types: tuple[str, ...]

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> "CaptureConfig | None":
        """Returns what a CreateEndpointConfig request captures; None for nothing."""
        config = parameters.get("DataCaptureConfig")
        if config is None or not config.get("EnableCapture", True):
            return None
        modes = {option["CaptureMode"] for option in config["CaptureOptions"]}
        headers = config.get("CaptureContentTypeHeader", {})
        return cls(
            config["DestinationS3Uri"].rstrip("/"),
            config["InitialSamplingPercentage"],
            frozenset((_INPUT, _OUTPUT) if _BOTH in modes else modes),
            config.get("KmsKeyId"),
            tuple(headers.get("JsonContentTypes", ())),
            tuple(headers.get("CsvContentTypes", ())),
        )

    def describe(self, *, works: bool) -> dict[str, Any]:
        """Returns DescribeEndpoint's DataCaptureConfig; it works while records can be written."""
        return {
            "EnableCapture": True,
            "CaptureStatus": "Started" if works else "Stopped",
            "CurrentSamplingPercentage": self.percent,
            "DestinationS3Uri": self.uri,
            "KmsKeyId": self.key_id,
        }


@dataclass(frozen=True)
class Side:
    content_type: str | None
    body: bytes

    def data(self, mode: str, config: CaptureConfig) -> dict[str, str]:
        """Returns this side of a record: `INPUT` or `OUTPUT`, as text for some content types."""
        # Parameters such as the character set do not count.
        kind = (self.content_type or "").partition(";")[0].strip()
        found = {"mode": mode}
        if kind in (*config.json_types, *config.csv_types):
            found["data"] = self.body.decode(errors="replace")
            found["encoding"] = "JSON" if kind in config.json_types else "CSV"
        else:
            found["data"] = base64.b64encode(self.body).decode()
            found["encoding"] = "BASE64"
        if self.content_type is not None:
            found["observedContentType"] = self.content_type
        return found


@dataclass(frozen=True)
class Exchange:
    request: Side
    answer: Side
    inference_id: str | None
    custom_attributes: str | None

    def record(self, config: CaptureConfig, moment: datetime) -> str:
        captured = {}
        if _INPUT in config.modes:
            captured["endpointInput"] = self.request.data("INPUT", config)
        if _OUTPUT in config.modes:
            captured["endpointOutput"] = self.answer.data("OUTPUT", config)
        metadata = without_none(
            {
                "eventId": str(uuid.uuid4()),
                "inferenceId": self.inference_id,
                "customAttributes": self.custom_attributes and [self.custom_attributes],
                "inferenceTime": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        )
        content = {"captureData": captured, "eventMetadata": metadata, "eventVersion": "0"}
        return json.dumps(content, separators=(",", ":"))


@dataclass(frozen=True)
class CapturedVariant:
    """The owner of records: its role writes, and its config is as it was when the request came."""

    region: str
    endpoint: str
    variant: str
    role: str | None
    config: CaptureConfig


class CaptureWriter:
    def __init__(self, clients: LoopbackClients) -> None:
        self._clients = clients
        self._records: dict[CapturedVariant, list[str]] = {}
        self._lock = threading.Lock()
        self._stopped: set[tuple[str, str]] = set()
        self._writing = Periodic(self._write_all, _INTERVAL_SECONDS, "capture")

    def add(self, owner: CapturedVariant, exchange: Exchange) -> None:
        # S311: used for sampling, not for cryptography.
        if random.random() * 100 < owner.config.percent:  # noqa: S311
            line = exchange.record(owner.config, datetime.now(UTC))
            with self._lock:
                self._records.setdefault(owner, []).append(line)

    def works(self, region: str, endpoint: str) -> bool:
        return (region, endpoint) not in self._stopped

    def close(self) -> None:
        self._writing.close()
        self._write_all()

    def _write_all(self) -> None:
        with self._lock:
            records, self._records = self._records, {}
        for owner, lines in records.items():
            place = (owner.region, owner.endpoint)
            try:
                self._write(owner, lines)
            except ClientError as error:
                # SageMaker's answers do not depend on it either.
                logger.warning("capture of %s failed: %s", owner.endpoint, error)
                self._stopped.add(place)
            else:
                self._stopped.discard(place)

    def _write(self, owner: CapturedVariant, lines: Sequence[str]) -> None:
        parts = urlsplit(owner.config.uri)
        moment = datetime.now(UTC)
        folder = f"{owner.endpoint}/{owner.variant}/{moment:%Y/%m/%d/%H}"
        milliseconds = moment.microsecond // 1000
        name = f"{moment:%M-%S}-{milliseconds:03}-{uuid.uuid4()}.jsonl"
        key = f"{parts.path}/{folder}/{name}".removeprefix("/")
        s3 = self._clients.client("s3", owner.region)
        key_id = owner.config.key_id
        RoleAccess(s3, owner.role).require_writable(parts.netloc, key, key_id)
        encryption = {} if key_id is None else {
            "ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key_id
        }  # fmt: skip
        body = "".join(f"{line}\n" for line in lines).encode()
        s3.put_object(Bucket=parts.netloc, Key=key, Body=body, **encryption)
