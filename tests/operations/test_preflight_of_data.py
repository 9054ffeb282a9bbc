"""Preflight examines the key of the storage volumes, and the bucket of captured data."""

from slipway.access import Access
from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.places import examine_volume_key, find_capture_bucket


def examined(key: str, access: Access) -> str | tuple[str, str]:
    lines, problems = parted([examine_volume_key(key, access)])
    return lines[0] if lines else (problems[0].message, problems[0].remedy)


def test_a_key_is_there_enabled_and_symmetric(access: Access) -> None:
    kms = access.client("kms")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    assert examined(key, access) == f"volume key {key}"
    kms.disable_key(KeyId=key.rpartition("/")[2])
    assert examined(key, access) == (
        f"the key {key} is in state Disabled",
        "Enable the key, or name another one in `volume_key_arn`.",
    )
    missing = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    assert examined(missing, access) == (
        f"the key {missing} does not exist",
        "Correct `volume_key_arn`.",
    )
    pair = kms.create_key(KeySpec="RSA_2048", KeyUsage="ENCRYPT_DECRYPT")["KeyMetadata"]["Arn"]
    assert examined(pair, access) == (
        f"the key {pair} is of kind RSA_2048, and volumes take symmetric keys",
        "Name a symmetric key in `volume_key_arn`.",
    )


def test_a_bucket_of_captured_data_is_there(access: Access) -> None:
    _, (missing,) = parted([find_capture_bucket("no-such-capture", access)])
    assert (missing.message, missing.remedy) == (
        "the bucket no-such-capture, for captured data, does not exist",
        "Correct `data_capture.destination`, or make the bucket.",
    )
    access.client("s3").create_bucket(Bucket="such-a-capture")
    assert find_capture_bucket("such-a-capture", access) == "bucket such-a-capture"
