"""Data capture: what the endpoint served is read back from S3."""

import base64
import json
import re
from typing import Any

import pytest

from tests.embedded.hosting.conftest import may
from tests.support.waiting import eventually

BUCKET = "captures"
UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
MODES = [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}]


@pytest.fixture(scope="module", autouse=True)
def bucket(account: Any) -> None:
    account.s3.create_bucket(Bucket=BUCKET)


@pytest.fixture
def prefix(account: Any) -> str:
    return f"of-{account.name()}"


def settings(prefix: str, **more: Any) -> dict[str, Any]:
    return {
        "EnableCapture": True,
        "InitialSamplingPercentage": 100,
        "DestinationS3Uri": f"s3://{BUCKET}/{prefix}",
        "CaptureOptions": MODES,
        "CaptureContentTypeHeader": {
            "JsonContentTypes": ["application/json"],
            "CsvContentTypes": ["text/csv"],
        },
        **more,
    }


def start(account: Any, capture: dict[str, Any]) -> str:
    return account.serve(account.variant(account.model()), DataCaptureConfig=capture)


def keys(account: Any, prefix: str) -> list[str]:
    listed = account.s3.list_objects_v2(Bucket=BUCKET, Prefix=f"{prefix}/")
    return [item["Key"] for item in listed.get("Contents", [])]


def records(account: Any, prefix: str, count: int) -> list[dict[str, Any]]:
    """Waits for so many records below a prefix; returns them in the order of their files."""

    def found() -> list[dict[str, Any]] | None:
        lines = [
            json.loads(line)
            for key in keys(account, prefix)
            for line in account.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().splitlines()
        ]
        return lines if len(lines) >= count else None

    return eventually(found)


def test_requests_and_answers_are_json_lines(account, prefix):
    name = start(account, settings(prefix))
    described = account.sagemaker.describe_endpoint(EndpointName=name)["DataCaptureConfig"]
    assert described == {
        "EnableCapture": True,
        "CaptureStatus": "Started",
        "CurrentSamplingPercentage": 100,
        "DestinationS3Uri": f"s3://{BUCKET}/{prefix}",
    }
    binary = bytes(range(256))
    account.invoke(name, '{"a": 1}', ContentType="application/json", InferenceId="one")
    account.invoke(name, "1,2", ContentType="text/csv; charset=utf-8", CustomAttributes="c")
    account.runtime.invoke_endpoint(
        EndpointName=name, Body=binary, ContentType="application/octet-stream"
    )
    first, second, third = records(account, prefix, 3)
    assert first["captureData"]["endpointInput"] == {
        "observedContentType": "application/json",
        "mode": "INPUT",
        "data": '{"a": 1}',
        "encoding": "JSON",
    }
    output = first["captureData"]["endpointOutput"]
    # The stand-in's own content type is neither JSON nor CSV.
    assert (output["mode"], output["encoding"]) == ("OUTPUT", "BASE64")
    assert output["observedContentType"] == "text/x-stand-in"
    assert base64.b64decode(output["data"]) == b'{"a": 1}'
    assert first["eventMetadata"]["inferenceId"] == "one"
    assert re.fullmatch(UUID, first["eventMetadata"]["eventId"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first["eventMetadata"]["inferenceTime"])
    assert first["eventVersion"] == "0"
    assert second["captureData"]["endpointInput"]["encoding"] == "CSV"
    assert second["captureData"]["endpointInput"]["data"] == "1,2"
    assert second["eventMetadata"]["customAttributes"] == ["c"]
    captured = third["captureData"]["endpointInput"]
    assert captured["encoding"] == "BASE64"
    assert base64.b64decode(captured["data"]) == binary
    name_of_file = (
        rf"{prefix}/{name}/AllTraffic/\d{{4}}/\d\d/\d\d/\d\d/\d\d-\d\d-\d{{3}}-{UUID}.jsonl"
    )
    assert all(re.fullmatch(name_of_file, key) for key in keys(account, prefix))


def test_one_side_and_no_sample(account, prefix):
    one_side = start(account, settings(f"{prefix}/one", CaptureOptions=MODES[:1]))
    none = start(account, settings(f"{prefix}/none", InitialSamplingPercentage=0))
    off = start(account, settings(f"{prefix}/off", EnableCapture=False))
    for name in (none, off, one_side):
        account.invoke(name, "x")
    (record,) = records(account, f"{prefix}/one", 1)
    assert list(record["captureData"]) == ["endpointInput"]
    # One thread writes them all, and the last request was written.
    assert keys(account, prefix) == keys(account, f"{prefix}/one")


def test_an_update_keeps_the_capture_unless_it_is_excluded(account, prefix):
    name = start(account, settings(f"{prefix}/old"))
    variant = account.variant(account.model())

    def update(*excluded: str) -> str:
        described = account.update(
            name,
            account.config(variant, DataCaptureConfig=settings(f"{prefix}/new")),
            RetainAllVariantProperties=True,
            ExcludeRetainedVariantProperties=[{"VariantPropertyType": each} for each in excluded],
        )
        uri: str = described["DataCaptureConfig"]["DestinationS3Uri"]
        return uri.rpartition("/")[2]

    assert update() == "old"
    account.invoke(name, "kept")
    records(account, f"{prefix}/old", 1)
    assert update("DesiredWeight", "DataCaptureConfig") == "new"
    account.invoke(name, "moved")
    records(account, f"{prefix}/new", 1)


@pytest.mark.parametrize("missing", ["s3:PutObject", "kms:GenerateDataKey"])
def test_the_role_needs_each_right(account, role, prefix, missing):
    key = account.client("kms").create_key()["KeyMetadata"]["Arn"]
    resources = [f"arn:aws:s3:::{BUCKET}/{prefix}/*", key]

    def allow(*actions: str) -> None:
        role.allow(may("s3:GetObject", "s3:ListBucket"), may(*actions, on=resources))

    rights = {"s3:PutObject", "kms:GenerateDataKey"}
    allow(*(rights - {missing}))
    name = start(account, settings(prefix, KmsKeyId=key))

    def status() -> str:
        described = account.sagemaker.describe_endpoint(EndpointName=name)
        return str(described["DataCaptureConfig"]["CaptureStatus"])

    assert account.invoke(name, "answered all the same") == "answered all the same"
    eventually(lambda: status() == "Stopped")
    assert keys(account, prefix) == []
    allow(*rights)
    account.invoke(name, "x")
    records(account, prefix, 1)
    assert eventually(lambda: status() == "Started")
    (written,) = keys(account, prefix)
    assert account.s3.head_object(Bucket=BUCKET, Key=written)["SSEKMSKeyId"] == key


def test_the_answers_of_a_shadow_variant_are_captured_too(account, prefix):
    shadow = account.variant(account.model(mark="shadow "), "Shadow", InitialVariantWeight=1)
    name = account.serve(
        account.variant(account.model()),
        ShadowProductionVariants=[shadow],
        DataCaptureConfig=settings(prefix),
    )
    assert account.invoke(name, "x", InferenceId="one") == "x"
    found = records(account, prefix, 2)
    answers = {
        base64.b64decode(record["captureData"]["endpointOutput"]["data"]) for record in found
    }
    assert answers == {b"x", b"shadow x"}
    assert [record["eventMetadata"]["inferenceId"] for record in found] == ["one", "one"]
    assert len({record["eventMetadata"]["eventId"] for record in found}) == 2
    assert {key.split("/")[2] for key in keys(account, prefix)} == {"AllTraffic", "Shadow"}
