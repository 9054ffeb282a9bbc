"""Buckets of a server that tests share."""

from typing import Any


def remove_buckets(client: Any) -> None:
    """Removes all buckets, with their objects and unfinished uploads."""
    for bucket in client.list_buckets()["Buckets"]:
        name = bucket["Name"]
        for upload in client.list_multipart_uploads(Bucket=name).get("Uploads", ()):
            client.abort_multipart_upload(
                Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"]
            )
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=name):
            for item in page.get("Contents", ()):
                client.delete_object(Bucket=name, Key=item["Key"])
        client.delete_bucket(Bucket=name)
