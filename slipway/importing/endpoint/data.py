"""What SageMaker records of an endpoint, and the requests and answers that lie in S3."""

import re
from collections.abc import Mapping
from typing import Any

from slipway.config.sections.recording import Metrics
from slipway.deployed.answers import Answer
from slipway.deployed.fields import METRICS, QUEUE
from slipway.importing.endpoint.findings import Findings

_MODES: Mapping[str, tuple[str, ...]] = {
    "Input": ("input",),
    "Output": ("output",),
    "InputAndOutput": ("input", "output"),
}
# The content types that Slipway sets: bodies of all others are captured in Base64.
_CONTENT_TYPES: Mapping[str, list[str]] = {
    "JsonContentTypes": ["application/json"],
    "CsvContentTypes": ["text/csv"],
}
_FREQUENCY, _PERIOD_SECONDS = "publish_frequency_seconds", 60
_OF_QUEUE = "AWS documents it for real-time endpoints only."
_ADDRESSES = ("output", "failure_output")
_KEY = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+")
NO_KEY_ARN = "the config takes the ARN of a key, and no alias or id."
"""Why a key is left out whose ARN no answer tells."""


def capture_section(config: Answer, found: Findings) -> dict[str, Any] | None:
    """Returns the section `endpoint.data_capture`; None where nothing is captured."""
    raw = config.take("DataCaptureConfig")
    if raw is None:
        return None
    capture = Answer(raw)
    if not capture.take("EnableCapture"):
        found.leave_out_rest(capture, "DataCaptureConfig.", **dict.fromkeys(raw, "it is off."))
        return None
    section: dict[str, Any] = {"destination": as_prefix(str(capture.take("DestinationS3Uri")))}
    take_key(capture, ("KmsKeyId",), section, "key_arn")
    if (percent := capture.take("InitialSamplingPercentage")) is not None:
        section["sampling_percent"] = percent
    modes = [each.get("CaptureMode") for each in capture.take("CaptureOptions") or ()]
    what = {name for mode in modes for name in _MODES.get(str(mode), ())}
    section["capture"] = [name for name in ("input", "output") if name in what]
    for name, types in _CONTENT_TYPES.items():
        value = capture.take("CaptureContentTypeHeader", name)
        if value != types:
            found.change(
                f"DataCaptureConfig.{name}", value or [], f"{', '.join(types)} now, as everywhere."
            )
    found.leave_out_rest(capture, "DataCaptureConfig.", KmsKeyId=NO_KEY_ARN)
    return section


def async_section(config: Answer, found: Findings) -> dict[str, Any] | None:
    """Returns the section `endpoint.async_inference`; None for a realtime endpoint."""
    raw = config.take("AsyncInferenceConfig")
    if raw is None:
        return None
    answer = Answer(raw)
    section = {
        name: as_prefix(value) if name in _ADDRESSES else value
        for name, value in answer.fields(QUEUE).items()
    }
    if topics := section.get("include_response_in"):
        section["include_response_in"] = [each.partition("_")[0].lower() for each in topics]
    key = section.get("output_key_arn")
    if key is not None and not _KEY.fullmatch(key):
        del section["output_key_arn"]
        found.leave_out("AsyncInferenceConfig.OutputConfig.KmsKeyId", key, NO_KEY_ARN)
    found.leave_out_rest(answer, "AsyncInferenceConfig.")
    # Only the rights of the execution role tell it, and these may be wider.
    bucket = str(section.get("output", "")).removeprefix("s3://").partition("/")[0]
    found.guess(
        ("endpoint", "async_inference", "input"),
        "no answer tells where the requests lie. Name their prefix. Add `input_key_arn` and "
        "`topic_key_arn` where requests and topics have keys of their own.",
    )
    return {"input": f"s3://{bucket}/requests/", **section}


def metrics_section(config: Answer, found: Findings, *, is_async: bool) -> dict[str, Any] | None:
    """Returns the section `endpoint.metrics`; None where AWS's defaults apply."""
    raw = config.take("MetricsConfig")
    if raw is None:
        return None
    answer, defaults = Answer(raw), Metrics.model_validate({}).model_dump()
    told = answer.fields(METRICS)
    section = {name: value for name, value in told.items() if value != defaults[name]}
    found.leave_out_rest(answer, "MetricsConfig.")
    if is_async:
        for field, value in section.items():
            found.leave_out(f"MetricsConfig.{METRICS[field][0]}", value, _OF_QUEUE)
        return None
    seconds = section.get(_FREQUENCY, _PERIOD_SECONDS)
    if section.get("enhanced") and seconds > _PERIOD_SECONDS:
        del section[_FREQUENCY]
        found.change(
            f"MetricsConfig.{METRICS[_FREQUENCY][0]}",
            seconds,
            f"{_PERIOD_SECONDS} now, because alarms read the metrics every minute.",
        )
    return section or None


def take_key(answer: Answer, path: tuple[str, ...], section: dict[str, Any], field: str) -> None:
    """Moves the ARN of a key into a section; leaves an alias or an id where it is."""
    value = answer.take(*path)
    if value is None:
        return
    if _KEY.fullmatch(value):
        section[field] = value
    else:
        answer.put(value, *path)


def as_prefix(uri: str) -> str:
    """Returns an address in S3 with the final slash that configs have."""
    return uri if uri.endswith("/") else f"{uri}/"
