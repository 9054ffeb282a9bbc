"""Stacks with a volume key and with data capture: the role has the rights that they need."""

import json

import pytest

from tests.support.slipway_stack import SlipwayStack, golden_template
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")

BUCKET = "my-capture"
# The keys in the golden cases.
CAPTURE_KEY = "1234abcd-12ab-34cd-56ef-1234567890ab"
VOLUME_KEY = "0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d"


def make_key(stack: SlipwayStack) -> str:
    key: str = stack.stacks.client("kms").create_key()["KeyMetadata"]["KeyId"]
    return key


def test_captured_requests_come_back_from_the_bucket(stack: SlipwayStack) -> None:
    key = make_key(stack)
    text = golden_template("data-capture").replace(CAPTURE_KEY, key)
    text = text.replace('"InitialSamplingPercentage": 10', '"InitialSamplingPercentage": 100')
    name, s3 = "data-capture-local", stack.stacks.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    assert stack.stacks.create(name, stack.deployable(text)) == "CREATE_COMPLETE"
    runtime = stack.stacks.client("sagemaker-runtime")
    sent = {"EndpointName": name, "Body": b"{}", "ContentType": "application/json"}
    assert runtime.invoke_endpoint(**sent)["Body"].read() == b"{}"

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
    text, name, stacks = golden_template("volume-key"), "volume-key-local", stack.stacks
    kms = stacks.client("kms")
    first, second = make_key(stack), make_key(stack)
    template = stack.deployable(text.replace(VOLUME_KEY, first))
    assert stacks.create(name, template) == "CREATE_COMPLETE"
    assert len(kms.list_grants(KeyId=first)["Grants"]) == 1
    # The policy's name and logical id follow from the key.
    other = text.replace(VOLUME_KEY, second).replace("RightsVolumeKey", "RightsOtherVolumeKey")
    other = other.replace('"PolicyName": "VolumeKey', '"PolicyName": "OtherVolumeKey')
    assert stacks.update(name, stack.deployable(other)) == "UPDATE_COMPLETE"
    assert kms.list_grants(KeyId=first)["Grants"] == []
    assert len(kms.list_grants(KeyId=second)["Grants"]) == 1
    assert stacks.delete(name) == "DELETE_COMPLETE"
    # The role was kept until the grant was gone.
    assert kms.list_grants(KeyId=second)["Grants"] == []
