"""A real S3 API on loopback, and s5cmd and boto3 pointed at it."""

from collections.abc import Iterator

import pytest
from moto.server import ThreadedMotoServer

from slipway.access import Access
from tests.support.accounts import forget_accounts
from tests.support.projects import LOCAL


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def shared_access(s3_url: str) -> Access:
    """Reads botocore's models once for all tests."""
    return Access(
        LOCAL.region,
        {
            "AWS_ENDPOINT_URL": s3_url,
            # s5cmd's name for it.
            "S3_ENDPOINT_URL": s3_url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        },
    )


@pytest.fixture
def access(shared_access: Access) -> Access:
    """Access to an account that has its bucket and nothing else."""
    forget_accounts()
    shared_access.client("s3").create_bucket(Bucket=LOCAL.artifact_bucket)
    return shared_access


@pytest.fixture
def keys(access: Access):
    """Returns what is in the bucket: key to content."""

    def keys() -> dict[str, bytes]:
        client, bucket = access.client("s3"), LOCAL.artifact_bucket
        found = client.list_objects_v2(Bucket=bucket).get("Contents", ())
        return {
            item["Key"]: client.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
            for item in found
        }

    return keys
