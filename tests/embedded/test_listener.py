"""Operations that neither Slipway nor moto has."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from embedded_aws.clients import LoopbackClients
from tests.support.accounts import embedded_aws


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackClients]:
    with embedded_aws(tmp_path_factory.mktemp("account")) as server:
        clients = LoopbackClients(server.url)
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
