"""Requests that moto answers: the account, and operations that moto lacks."""

import contextlib
import socket
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from botocore.exceptions import ClientError
from moto.iam.models import iam_backends

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.identity import ACCOUNT_ID

FULL = """
import resource, sys, time
from slipway.embedded_aws.listener import Listener
listener = Listener(port=0, secret_access_key="secret")
listener.start()
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
print(listener.port, flush=True)
for _ in sys.stdin:
    begun = time.process_time()
    time.sleep(1)
    print(time.process_time() - begun, flush=True)
listener.stop()
"""


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


def test_at_its_limit_of_open_files_it_waits() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FULL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        port = int(server.stdout.readline())
        with contextlib.ExitStack() as stack:
            for _ in range(60):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            server.stdin.write("measure\n")
            server.stdin.flush()
            assert float(server.stdout.readline()) < 0.2
        # The connections have ended, and it answers again.
        assert httpx.get(f"http://localhost:{port}/", timeout=20).status_code == 403
        server.stdin.close()
        assert server.wait(20) == 0


@pytest.mark.parametrize("path", ["/bucket/key", "/endpoints/a/invocations"])
@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: abc",
        "Content-Length: -1",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
    ],
)
def test_a_body_whose_end_nobody_can_tell_is_refused(
    clients: LoopbackClients, headers: str, path: str
) -> None:
    port = urlsplit(clients.connection.url).port
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        head = f"PUT {path} HTTP/1.1\r\nHost: localhost:{port}\r\n{headers}\r\n\r\n"
        connection.sendall(head.encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.split(b"\r\n")[0].split()[1] == b"400"
    assert answer.count(b"HTTP/1.1 ") == 1
