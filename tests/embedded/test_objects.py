"""Requests that S3 refuses and moto takes, sent by boto3 and s5cmd."""

import http.client
import os
import socket
import subprocess
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5, sha256
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from slipway.embedded_aws.identity import ACCESS_KEY_ID
from slipway.embedded_aws.objects import Write
from slipway.publishing.s5cmd import executable
from tests.support.accounts import SECRET_ACCESS_KEY, forget_accounts, object_storage
from tests.support.buckets import remove_buckets
from tests.support.versitygw import versitygw

BUCKET = "models"
REGION = "eu-west-1"
BODY = b"weights"
ODD_KEY = "a b+c/ä%20(1)=~.txt"


@pytest.fixture(
    scope="module",
    params=["embedded-aws", pytest.param("versitygw", marks=pytest.mark.versitygw)],
)
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "versitygw":
        server = versitygw(tmp_path_factory.mktemp("versitygw"), REGION)
    else:
        server = object_storage()
    with server as url:
        yield url


@pytest.fixture
def client(url: str) -> Callable[..., Any]:
    def client(secret: str = SECRET_ACCESS_KEY, **options: Any) -> Any:
        path_style, once = {"addressing_style": "path"}, {"total_max_attempts": 1}
        return boto3.client(
            "s3",
            endpoint_url=url,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY_ID,
            aws_secret_access_key=secret,
            config=Config(s3=path_style, retries=once, **options),
        )

    forget_accounts()
    remove_buckets(client())
    client().create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    return client


def refused(call: Callable[..., Any], **parameters: Any) -> tuple[int, str]:
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    response: Any = caught.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


def keys(client: Callable[..., Any]) -> list[str]:
    return [item["Key"] for item in client().list_objects_v2(Bucket=BUCKET).get("Contents", ())]


@pytest.mark.parametrize("key", ["config.json", ODD_KEY])
def test_a_key_with_another_secret_is_refused(client: Callable[..., Any], key: str) -> None:
    client().put_object(Bucket=BUCKET, Key=key, Body=BODY, Metadata={"two": "a  b"})
    assert client().list_objects_v2(Bucket=BUCKET, Prefix=key[:5])["KeyCount"] == 1
    other = client("wrong")
    denied = (403, "SignatureDoesNotMatch")
    assert refused(other.put_object, Bucket=BUCKET, Key=key, Body=b"other") == denied
    assert refused(other.get_object, Bucket=BUCKET, Key=key) == denied
    assert refused(other.list_objects_v2, Bucket=BUCKET, Prefix=key[:5]) == denied
    assert client().get_object(Bucket=BUCKET, Key=key)["Body"].read() == BODY


def test_s5cmd_reports_a_wrong_secret(client: Callable[..., Any], url: str) -> None:
    client().put_object(Bucket=BUCKET, Key=ODD_KEY, Body=BODY)
    environment = {
        "PATH": os.environ["PATH"],
        "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
        "AWS_REGION": REGION,
        "S3_ENDPOINT_URL": url,
    }
    command = (executable(), "cat", f"s3://{BUCKET}/{ODD_KEY}")
    for secret, found in ((SECRET_ACCESS_KEY, BODY), ("wrong", b"")):
        done = subprocess.run(
            command,
            env={**environment, "AWS_SECRET_ACCESS_KEY": secret},
            capture_output=True,
            check=False,
        )
        assert done.stdout == found
    assert b"Forbidden" in done.stderr


def test_a_body_that_changed_after_it_was_signed_is_refused(client: Callable[..., Any]) -> None:
    changing = client()

    def change(request: Any, **_: Any) -> None:
        request.body = b"WEIGHTS"

    changing.meta.events.register("before-send.s3.PutObject", change)
    assert refused(
        changing.put_object,
        **{"Bucket": BUCKET, "Key": "k", "Body": BODY, "ChecksumSHA256": digest(sha256, BODY)},
    ) == (400, "XAmzContentSHA256Mismatch")
    assert keys(client) == []


def digest(function: Callable[[bytes], Any], body: bytes) -> str:
    return b64encode(function(body).digest()).decode()


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ({"ContentMD5": digest(md5, b"other")}, "BadDigest"),
        ({"ContentMD5": "no digest"}, "InvalidDigest"),
        ({"ContentMD5": b64encode(b"short").decode()}, "InvalidDigest"),
        ({"ChecksumSHA256": digest(sha256, b"other")}, "BadDigest"),
        ({"ChecksumCRC32": b64encode(b"0000").decode()}, "BadDigest"),
        ({"ChecksumSHA1": "no digest"}, "InvalidRequest"),
        ({"ChecksumSHA256": b64encode(b"short").decode()}, "InvalidRequest"),
    ],
)
def test_a_wrong_digest_is_refused(
    client: Callable[..., Any], header: dict[str, str], code: str
) -> None:
    put = client().put_object
    assert refused(put, Bucket=BUCKET, Key="k", Body=BODY, **header) == (400, code)
    assert keys(client) == []
    put(Bucket=BUCKET, Key="k", Body=BODY, ContentMD5=digest(md5, BODY))
    put(Bucket=BUCKET, Key="k", Body=BODY, ChecksumSHA256=digest(sha256, BODY))


def test_each_part_is_checked_and_the_checksum_of_the_whole_is_not_of_the_last_request(
    client: Callable[..., Any],
) -> None:
    s3, place = client(), {"Bucket": BUCKET, "Key": "k"}
    checksum = b64encode(zlib.crc32(BODY).to_bytes(4, "big")).decode()
    kind, crc32 = {"ChecksumType": "FULL_OBJECT"}, {"ChecksumAlgorithm": "CRC32"}
    upload = s3.create_multipart_upload(**place, **kind, **crc32)["UploadId"]
    body = {**place, "UploadId": upload, "PartNumber": 1, "Body": BODY}
    wrong = {"ContentMD5": digest(md5, b"other")}
    assert refused(s3.upload_part, **body, **wrong) == (400, "BadDigest")
    part = s3.upload_part(**body, **crc32)
    parts = [{"PartNumber": 1, "ETag": part["ETag"], "ChecksumCRC32": checksum}]
    s3.complete_multipart_upload(
        **place, **kind, UploadId=upload, ChecksumCRC32=checksum, MultipartUpload={"Parts": parts}
    )
    assert s3.get_object(**place)["Body"].read() == BODY


# versitygw answers 500.
@pytest.mark.parametrize("url", ["embedded-aws"], indirect=True)
def test_half_a_body_is_no_object(client: Callable[..., Any], url: str) -> None:
    signs = client(signature_version="s3v4")
    address = signs.generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": "k"})
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    connection.putrequest("PUT", address.removeprefix(url))
    connection.putheader("Content-Length", "10")
    connection.endheaders(b"half")
    connection.sock.shutdown(socket.SHUT_WR)
    response = connection.getresponse()
    assert response.status == 400
    assert b"<Code>IncompleteBody</Code>" in response.read()
    connection.close()
    assert keys(client) == []


def test_a_copy_is_of_the_object_that_was_read(client: Callable[..., Any]) -> None:
    s3 = client()
    read = s3.put_object(Bucket=BUCKET, Key="from", Body=BODY)["ETag"]
    source = {"Bucket": BUCKET, "CopySource": f"{BUCKET}/from", "Key": "to"}
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="to")["UploadId"]
    part = {**source, "UploadId": upload, "PartNumber": 1}
    for condition in (read, read.strip('"')):
        s3.copy_object(**source, CopySourceIfMatch=condition)
        s3.upload_part_copy(**part, CopySourceIfMatch=condition)
    s3.copy_object(**source)
    s3.delete_object(Bucket=BUCKET, Key="to")

    s3.put_object(Bucket=BUCKET, Key="from", Body=b"other")
    failed = (412, "PreconditionFailed")
    assert refused(s3.copy_object, **source, CopySourceIfMatch=read) == failed
    assert refused(s3.upload_part_copy, **part, CopySourceIfMatch=read) == failed
    assert keys(client) == ["from"]


# versitygw keeps an object's checksum beside it: a reader may meet the checksum of another one.
@pytest.mark.parametrize("url", ["embedded-aws"], indirect=True)
def test_writes_and_reads_of_one_key_at_once_all_succeed(client: Callable[..., Any]) -> None:
    s3 = client()

    def write(number: int) -> int:
        body = bytes([number]) * (4 << 20)
        done = s3.put_object(Bucket=BUCKET, Key="k", Body=body)
        assert done["ETag"] == f'"{md5(body, usedforsecurity=False).hexdigest()}"'
        return int(done["ResponseMetadata"]["HTTPStatusCode"])

    def read(_: int) -> int:
        found: bytes = s3.get_object(Bucket=BUCKET, Key="k")["Body"].read()
        assert found == found[:1] * (4 << 20)
        return 200

    write(0)
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(call, number) for number in range(32) for call in (write, read)]
        assert {call.result() for call in calls} == {200}


def test_a_conditional_write_keeps_what_lies_there(client: Callable[..., Any]) -> None:
    s3, place = client(), {"Bucket": BUCKET, "Key": "k"}
    s3.put_object(**place, Body=BODY)
    again = {**place, "Body": b"other", "IfNoneMatch": "*"}
    assert refused(s3.put_object, **again) == (412, "PreconditionFailed")
    assert s3.get_object(**place)["Body"].read() == BODY


def test_a_conditional_write_whose_object_is_deleted_meanwhile_conflicts() -> None:
    write = Write("no-bucket", "k", creates=True, if_match=None, if_none_match="*")
    refusal = write.find_conflict(was_there=True)
    assert (refusal.code, refusal.status) == ("ConditionalRequestConflict", "409 Conflict")
    assert write.find_conflict(was_there=False) is None
