"""The listener refuses a request whose body's end nobody can tell."""

import socket
from collections.abc import Iterator

import pytest

from embedded_aws.listener import Listener
from tests.support.accounts import SECRET_ACCESS_KEY


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    listener = Listener(port=0, secret_access_key=SECRET_ACCESS_KEY)
    listener.start()
    yield listener
    listener.stop()


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
def test_a_body_of_no_certain_length_is_refused(listener: Listener, headers: str, path: str):
    with socket.create_connection(("127.0.0.1", listener.port), timeout=30) as connection:
        head = f"PUT {path} HTTP/1.1\r\nHost: localhost:{listener.port}\r\n{headers}\r\n\r\n"
        connection.sendall(head.encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.split(b"\r\n")[0].split()[1] == b"400"
    assert answer.count(b"HTTP/1.1 ") == 1
