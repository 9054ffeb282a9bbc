"""Requests that moto answers: the account, and operations that moto lacks."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.iam.models import iam_backends

from embedded_aws.clients import LoopbackClients
from embedded_aws.identity import ACCOUNT_ID
from tests.support.accounts import embedded_aws


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackClients]:
    with embedded_aws(tmp_path_factory.mktemp("account")) as server:
        clients = LoopbackClients(server.connection)
        yield clients
        clients.close()


@pytest.mark.parametrize(
    ("service", "operation", "parameters"),
    [
        # JSON: the CDK CLI asks this after some deployments that failed.
        ("cloudtrail", "lookup_events", {}),
        # XML
        ("iam", "get_service_last_accessed_details", {"JobId": "1" * 36}),
    ],
)
def test_an_operation_that_is_not_there_is_refused_at_once(
    clients: LoopbackClients, service: str, operation: str, parameters: dict[str, Any]
) -> None:
    client = clients.client(service, "us-east-1")
    with pytest.raises(ClientError) as caught:
        getattr(client, operation)(**parameters)
    assert caught.value.response["Error"] == {
        "Code": "UnknownOperationException",
        "Message": f"The embedded AWS does not implement this request to {service}: "
        f"The {operation} action has not been implemented. docs/embedded-aws.md lists what it "
        "does.",
        **({} if service == "cloudtrail" else {"Type": "Sender"}),
    }
    answered = caught.value.response["ResponseMetadata"]
    assert (answered["HTTPStatusCode"], answered["RetryAttempts"]) == (400, 0)


def test_the_first_request_does_not_read_the_policies_of_every_partition(
    clients: LoopbackClients,
) -> None:
    """It would take half a second."""
    assert clients.client("sts", "us-east-1").get_caller_identity()["Account"] == ACCOUNT_ID
    assert set(iam_backends[ACCOUNT_ID]) <= {"aws"}
