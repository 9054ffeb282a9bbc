"""Weights that lie in S3: hashed as they stream by, copied from S3 to S3, never another version."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ResponseStreamingError

from slipway.access import Access
from slipway.config.sections.artifacts import S3Weights
from slipway.errors import UserError
from slipway.publishing import objects
from slipway.publishing.file_set import require_whole
from slipway.publishing.manifest import Snapshot
from slipway.publishing.objects import publish_objects
from slipway.publishing.store import ArtifactStore
from slipway.publishing.weights import publish_weights
from slipway.s3_address import S3Address
from tests.publishing.checkpoints import safetensors
from tests.support.projects import LOCAL, messages, write_files

BUCKET = "my-models"
PREFIX = S3Address.of(f"s3://{BUCKET}/gpt2/xl/")
FILES = {
    "config.json": b"{}",
    "empty": b"",
    "model-00001.safetensors": safetensors(bytes(range(256)) * 9000),
    "sub/ünï 雪.txt": b"name",
}

PARTS_OF_5_MIB = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)


@pytest.fixture
def source(access: Access) -> Any:
    client = access.client("s3")
    client.create_bucket(Bucket=BUCKET)
    for name, body in FILES.items():
        client.put_object(Bucket=BUCKET, Key=f"gpt2/xl/{name}", Body=body)
    client.put_object(Bucket=BUCKET, Key="gpt2/xl/folder/", Body=b"")
    client.put_object(Bucket=BUCKET, Key="gpt2/xl-other", Body=b"not meant")
    return client


def refusal(client: Any, store: ArtifactStore, prefix: S3Address = PREFIX) -> str:
    with pytest.raises(UserError) as caught:
        publish_objects(client, prefix, store)
    (problem,) = caught.value.problems
    return f"{problem.message} / {problem.remedy}"


class Client:
    def __init__(self, client: Any, change: Any) -> None:
        self._client = client
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def get_object(self, **parameters: Any) -> Any:
        return self._change(self._client, parameters)


class BrokenBody:
    """A body whose connection breaks after so many bytes."""

    def __init__(self, body: Any, break_after_bytes: int) -> None:
        self._body = body
        self._left = break_after_bytes

    def __enter__(self) -> BrokenBody:
        return self

    def __exit__(self, *exception: object) -> None:
        self._body.close()

    def iter_chunks(self, chunk_size: int) -> Iterator[bytes]:
        content = self._body.read(self._left)
        if content:
            yield content
        raise ResponseStreamingError(error="connection broken")


def test_the_artifact_is_that_of_the_same_files_on_a_disk(source, store, keys, tmp_path):
    manifest, copied = publish_objects(source, PREFIX, store)
    assert manifest == Snapshot.of(write_files(tmp_path, FILES), "disk").manifest
    prefix = f"artifacts/{manifest.digest}"
    assert keys() == {
        **{f"{prefix}/files/{name}": body for name, body in FILES.items()},
        f"{prefix}/manifest.json": manifest.render(),
    }
    total = sum(map(len, FILES.values()))
    assert (copied, store.progress.totals) == (total, [("reading", total), ("copying", total)])
    # A second time it is read, since it may have changed, and not copied.
    assert publish_objects(source, PREFIX, store) == (manifest, 0)


def test_what_was_copied_before_is_not_copied_again(source, store):
    manifest, _ = publish_objects(source, PREFIX, store)
    base = f"artifacts/{manifest.digest}"
    for key in ("manifest.json", "files/config.json"):
        source.delete_object(Bucket=LOCAL.artifact_bucket, Key=f"{base}/{key}")
    assert publish_objects(source, PREFIX, store) == (manifest, 2)
    # Nor is another object of the same size taken for it.
    source.put_object(Bucket=LOCAL.artifact_bucket, Key=f"{base}/files/config.json", Body=b"[]")
    with pytest.raises(UserError, match=r"differs from the one sent, in: config\.json"):
        publish_objects(source, PREFIX, store)


def test_the_lock_names_the_address(source, store, tmp_path):
    part, _ = publish_weights(S3Weights(source="s3", uri=PREFIX.uri), tmp_path, store)
    assert (part.source, part.target, part.file_count) == ("s3://my-models/gpt2/xl/", "any", 4)


def test_a_stream_that_breaks_goes_on_where_it_stopped(source, store):
    ranges: list[str] = []

    def breaking(client: Any, parameters: dict[str, Any]) -> Any:
        ranges.append(parameters["Range"])
        found = client.get_object(**parameters)
        if parameters["Key"].endswith("safetensors") and len(ranges) < 5:
            found["Body"] = BrokenBody(found["Body"], 100_000)
        return found

    manifest, _ = publish_objects(Client(source, breaking), PREFIX, store)
    entry = next(entry for entry in manifest.entries if entry.path.endswith("safetensors"))
    assert entry.sha256 == hashlib.sha256(FILES[entry.path]).hexdigest()
    assert ranges[1:5] == ["bytes=0-", "bytes=100000-", "bytes=200000-", "bytes=300000-"]


def test_a_stream_that_brings_nothing_more_is_given_up(source, store, keys):
    def breaking(client: Any, parameters: dict[str, Any]) -> Any:
        found = client.get_object(**parameters)
        return {"Body": BrokenBody(found["Body"], 0)}

    assert refusal(Client(source, breaking), store) == (
        "s3://my-models/gpt2/xl/ could not be read and copied: An error occurred while reading "
        "from response stream: connection broken / Run the command again: what was copied is not "
        "copied twice."
    )
    assert keys() == {}


def test_an_object_that_is_replaced_meanwhile_is_never_mixed(source, store, keys):
    def replacing(client: Any, parameters: dict[str, Any]) -> Any:
        client.put_object(Bucket=BUCKET, Key=parameters["Key"], Body=b"other")
        return client.get_object(**parameters)

    assert refusal(Client(source, replacing), store) == (
        "an object under s3://my-models/gpt2/xl/ was replaced while it was read / Run the command "
        "again once nobody writes there."
    )
    assert keys() == {}


def test_the_copy_asks_for_the_object_that_was_read(source, store):
    asked: list[dict[str, str]] = []
    store.client.meta.events.register(
        "before-call.s3.CopyObject", lambda params, **_: asked.append(dict(params["headers"]))
    )
    publish_objects(source, PREFIX, store)
    etags = {
        item["ETag"]
        for item in source.list_objects_v2(Bucket=BUCKET, Prefix=PREFIX.key)["Contents"]
        if not item["Key"].endswith("/")
    }
    assert {headers["x-amz-copy-source-if-match"] for headers in asked} == etags
    assert {headers["x-amz-tagging-directive"] for headers in asked} == {"REPLACE"}


@pytest.mark.parametrize("operation", ["CopyObject", "UploadPartCopy"])
def test_an_object_that_is_replaced_before_its_copy_is_not_copied(
    source, store, keys, monkeypatch, operation
):
    monkeypatch.setattr(objects, "COPY", PARTS_OF_5_MIB)
    size_bytes = 1 if operation == "CopyObject" else 6 << 20
    source.put_object(Bucket=BUCKET, Key="gpt2/xl/config.json", Body=b"a" * size_bytes)

    is_replaced = threading.Lock()

    # Of the same size, which a later run would take for the file that it misses.
    def replace(**_: Any) -> None:
        if is_replaced.acquire(blocking=False):
            source.put_object(Bucket=BUCKET, Key="gpt2/xl/config.json", Body=b"b" * size_bytes)

    store.client.meta.events.register(f"before-call.s3.{operation}", replace)
    assert refusal(source, store) == (
        "an object under s3://my-models/gpt2/xl/ was replaced while it was read / Run the command "
        "again once nobody writes there."
    )
    assert keys() == {}
    assert source.list_multipart_uploads(Bucket=store.bucket).get("Uploads", []) == []


def test_a_large_object_is_copied_in_parts(source, store, keys, monkeypatch):
    monkeypatch.setattr(objects, "COPY", PARTS_OF_5_MIB)
    body = bytes(range(256)) * (44 << 10)
    source.put_object(Bucket=BUCKET, Key="gpt2/xl/config.json", Body=body)
    copied: list[str] = []
    store.client.meta.events.register(
        "before-call.s3.UploadPartCopy",
        lambda params, **_: copied.append(params["headers"]["x-amz-copy-source-if-match"]),
    )
    manifest, _ = publish_objects(source, PREFIX, store)
    assert len(copied) == 3
    assert len(set(copied)) == 1
    assert keys()[f"artifacts/{manifest.digest}/files/config.json"] == body


def test_an_object_that_came_in_parts_can_be_read_after_it_was_copied_whole(
    source, store, keys, tmp_path
):
    # Its checksum is of its parts; a copy that kept it would be refused by who reads it.
    body = bytes(range(256)) * (36 << 10)
    (tmp_path / "large").write_bytes(body)
    source.upload_file(str(tmp_path / "large"), BUCKET, "gpt2/xl/config.json")
    manifest, _ = publish_objects(source, PREFIX, store)
    assert keys()[f"artifacts/{manifest.digest}/files/config.json"] == body


# versitygw takes such a key for that of another object.
@pytest.mark.parametrize("s3_url", ["embedded-aws"], indirect=True)
def test_names_that_no_file_can_have(source, store):
    source.put_object(Bucket=BUCKET, Key="gpt2/xl/a//b", Body=b"x")
    assert refusal(source, store) == (
        "s3://my-models has an object whose name no file can have: 'gpt2/xl/a//b' / Copy it to "
        "another key, or remove it."
    )


def test_a_prefix_without_objects_and_a_bucket_that_is_not_there(source, store):
    assert refusal(source, store, S3Address.of(f"s3://{BUCKET}/none/")) == (
        "there are no objects under s3://my-models/none/ / Put the model's files there."
    )
    assert refusal(source, store, S3Address.of("s3://no-such-bucket/x/")) == (
        "there is no bucket no-such-bucket / Correct the address."
    )


def test_a_prefix_that_may_not_be_read(store):
    from botocore.exceptions import ClientError

    class Denied:
        """S3's answer to a prefix one may not list."""

        def get_paginator(self, name: str) -> Denied:
            return self

        def paginate(self, **_: Any) -> Any:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ListObjectsV2")

    assert refusal(Denied(), store) == (
        "s3://my-models/gpt2/xl/ may not be read: AccessDenied / Use credentials that may list "
        "that bucket and read its objects, and decrypt them where they are encrypted."
    )


def test_a_checkpoint_that_is_not_whole_is_refused_from_the_beginnings_of_its_files(
    source, store, keys
):
    name, body = "model-00001.safetensors", FILES["model-00001.safetensors"][:-1]
    source.put_object(Bucket=BUCKET, Key=f"gpt2/xl/{name}", Body=body)
    index = b'{"weight_map": {"a": "model-00001.safetensors", "b": "model-00002.safetensors"}}'
    source.put_object(Bucket=BUCKET, Key="gpt2/xl/model.safetensors.index.json", Body=index)
    asked: list[str] = []
    source.meta.events.register(
        "before-call.s3.GetObject", lambda params, **_: asked.append(params["headers"]["Range"])
    )
    with pytest.raises(UserError) as caught:
        publish_objects(source, PREFIX, store, select=require_whole)
    prefix = "s3://my-models/gpt2/xl"
    assert messages(caught.value) == [
        f"{prefix}/{name} has {len(body)} bytes, and its header tells of {len(body) + 1}",
        f"{prefix} lacks model-00002.safetensors, which model.safetensors.index.json names",
    ]
    assert keys() == {}
    # No weight was read.
    assert max(int(each.rpartition("-")[2]) for each in asked) < 200
