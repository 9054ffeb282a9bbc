"""What tests of refreshed facts share."""

import boto3
import pytest
from botocore.stub import Stubber


@pytest.fixture
def client():
    """Of the Pricing API."""
    return boto3.client(
        "pricing",
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # noqa: S106 - nothing is signed for anybody
    )


@pytest.fixture
def api(client):
    """Answers the client, in the order of the answers."""
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()
