"""Stacks with a volume key and with data capture: the role has the rights that they need."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import DIGEST
from tests.support.slipway_stack import SlipwayStack, publish_functions, slipway_stack
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")

_TEMPLATES = Path(__file__).parents[1] / "golden" / "templates"
BUCKET = "my-capture"
# The keys in the golden cases.
CAPTURE_KEY = "1234abcd-12ab-34cd-56ef-1234567890ab"
VOLUME_KEY = "0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path_factory.mktemp("data"), time_scale=0.005) as made:
        made.stacks.client("s3").create_bucket(Bucket=BUCKET)
        yield made


def make_key(stack: SlipwayStack) -> str:
    key: str = stack.stacks.client("kms").create_key()["KeyMetadata"]["KeyId"]
    return key


def deployable(stack: SlipwayStack, text: str) -> dict[str, Any]:
    template: dict[str, Any] = json.loads(text.replace(DIGEST, stack.publish("ok")))
    publish_functions(stack.stacks, template)
    return template


def invoke(stack: SlipwayStack, name: str, body: bytes) -> bytes:
    runtime = stack.stacks.client("sagemaker-runtime")
    answer: bytes = runtime.invoke_endpoint(
        EndpointName=name, Body=body, ContentType="application/json"
    )["Body"].read()
    return answer


def test_captured_requests_come_back_from_the_bucket(stack: SlipwayStack) -> None:
    key = make_key(stack)
    text = (_TEMPLATES / "data-capture.json").read_text("utf-8").replace(CAPTURE_KEY, key)
    text = text.replace('"InitialSamplingPercentage": 10', '"InitialSamplingPercentage": 100')
    name = "data-capture-local"
    assert stack.stacks.create(name, deployable(stack, text)) == "CREATE_COMPLETE"
    assert invoke(stack, name, b"{}") == b"{}"
    s3 = stack.stacks.client("s3")

    def written() -> list[str]:
        listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=f"tiny/{name}/AllTraffic/")
        return [item["Key"] for item in listed.get("Contents", [])]

    (path,) = eventually(written)
    found = s3.get_object(Bucket=BUCKET, Key=path)
    assert found["SSEKMSKeyId"].endswith(key)
    (line,) = found["Body"].read().splitlines()
    # The case captures requests alone.
    assert json.loads(line)["captureData"] == {
        "endpointInput": {
            "observedContentType": "application/json",
            "mode": "INPUT",
            "data": "{}",
            "encoding": "JSON",
        }
    }
    assert stack.stacks.delete(name) == "DELETE_COMPLETE"
    assert written() == [path]


def test_another_volume_key_takes_its_right_along(stack: SlipwayStack) -> None:
    text = (_TEMPLATES / "volume-key.json").read_text("utf-8")
    name, stacks = "volume-key-local", stack.stacks
    kms = stacks.client("kms")
    first, second = make_key(stack), make_key(stack)
    assert (
        stacks.create(name, deployable(stack, text.replace(VOLUME_KEY, first))) == "CREATE_COMPLETE"
    )
    assert len(kms.list_grants(KeyId=first)["Grants"]) == 1
    # The policy's name and logical id follow from the key.
    other = text.replace(VOLUME_KEY, second).replace("RightsVolumeKey", "RightsOtherVolumeKey")
    other = other.replace('"PolicyName": "VolumeKey', '"PolicyName": "OtherVolumeKey')
    assert stacks.update(name, deployable(stack, other)) == "UPDATE_COMPLETE"
    assert kms.list_grants(KeyId=first)["Grants"] == []
    assert len(kms.list_grants(KeyId=second)["Grants"]) == 1
    assert stacks.delete(name) == "DELETE_COMPLETE"
    # The role was kept until the grant was gone.
    assert kms.list_grants(KeyId=second)["Grants"] == []
