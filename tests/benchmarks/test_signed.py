"""Signed requests: botocore's signature, an answer of any form, and a connection that is closed."""

import json
import socket
import threading
from contextlib import contextmanager

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from benchmarks import signed_driver
from slipway.access import Access
from slipway.benchmarking.connections import Connection, LoadError
from slipway.benchmarking.load import run_load
from slipway.benchmarking.signed import SignedRequests, signed_requests
from tests.benchmarks.load_server import served

PATIENCE_SECONDS = 10.0
CREDENTIALS = ReadOnlyCredentials("AKIDEXAMPLE", "secret", "a-session-token")


def ask(port, *bodies):
    """Returns the answers to signed requests through one connection."""
    requests = requests_to(port)

    async def send_all():
        connection = Connection(requests.url, PATIENCE_SECONDS)
        found = [(await connection.exchange(requests.of(body))).body for body in bodies]
        connection.close()
        return found

    return run_load(send_all())


def requests_to(port):
    url = f"http://127.0.0.1:{port}/endpoints/served/invocations"
    return SignedRequests(url, "eu-west-1", lambda: CREDENTIALS)


def test_a_request_has_the_signature_that_a_verifier_computes():
    seen = []

    def note(path, headers):
        seen.append((path, dict(headers)))

    with served(lambda body: (200, body.upper()), seen=note) as port:
        assert ask(port, b'{"a": 1}') == [b'{"A": 1}']
    [(path, headers)] = seen
    assert path == "/endpoints/served/invocations"
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Amz-Security-Token"] == CREDENTIALS.token
    # Recomputed from what arrived, as the service does.
    arrived = AWSRequest(
        "POST",
        f"http://{headers['Host']}{path}",
        {
            name: headers[name]
            for name in ("Content-Type", "Accept", "X-Amz-Date", "X-Amz-Security-Token")
        },
        b'{"a": 1}',
    )
    arrived.context["timestamp"] = headers["X-Amz-Date"]
    verifier = SigV4Auth(CREDENTIALS, "sagemaker", "eu-west-1")
    canonical = verifier.canonical_request(arrived)
    signature = verifier.signature(verifier.string_to_sign(arrived, canonical), arrived)
    assert headers["Authorization"].endswith(f"Signature={signature}")
    assert "/eu-west-1/sagemaker/aws4_request" in headers["Authorization"]


def test_a_body_is_signed_once_for_many_requests():
    asked = 0

    def credentials():
        nonlocal asked
        asked += 1
        return CREDENTIALS

    requests = SignedRequests("http://127.0.0.1:1/x", "us-east-1", credentials)
    first = requests.of(b"a")
    assert all(requests.of(b"a") is first for _ in range(10))
    assert requests.of(b"b") != first
    assert asked == 2


@contextmanager
def raw_server(*answers):
    """Accepts a connection for each answer, reads a request, sends the answer, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            for answer in answers:
                connection, _ = listening.accept()
                with connection:
                    while b"{}" not in connection.recv(65_536):
                        pass
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"


def test_a_connection_that_was_closed_is_opened_again():
    last = WHOLE.replace(b"3\r\n", b"3\r\nConnection: close\r\n")
    with raw_server(CHUNKED, WHOLE, last, WHOLE) as port:
        assert ask(port, *[b"{}"] * 4) == [b"abc"] * 4


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (WHOLE[:-1], "the connection was closed during an answer"),
        (b"", "the connection was closed before an answer"),
        (b"SSH-2.0\r\n\r\n", "HttpParser"),
    ],
)
def test_half_an_answer_is_an_error(answer, message):
    answers = (answer,)
    with (
        raw_server(*answers) as port,
        pytest.raises(LoadError, match=f"a request failed: .*{message}"),
    ):
        ask(port, b"{}")


def test_an_endpoints_address_is_boto3s():
    variables = {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": None,
    }
    target = signed_requests(Access("eu-west-1", variables), "my-endpoint")
    assert target.url == (
        "https://runtime.sagemaker.eu-west-1.amazonaws.com/endpoints/my-endpoint/invocations"
    )
    assert target.region == "eu-west-1"
    assert target.credentials().access_key == "AKIDEXAMPLE"


@pytest.mark.size("all")
def test_the_command_measures_the_share_of_the_ideal_rate(capsys, tmp_path):
    assert signed_driver.main(["--connections", "4", "--seconds", "1"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["loop"], found["connections"]) == ("closed", 4)
    # No answer comes before 50 ms.
    assert 0 < found["share_of_ideal"] <= 1.0
    assert found["requests_per_second"] == pytest.approx(80 * found["share_of_ideal"], rel=0.01)
    assert found["processor_milliseconds_per_request"] > 0
