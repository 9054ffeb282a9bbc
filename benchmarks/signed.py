"""A connection to an endpoint's InvokeEndpoint that costs a load driver little.

boto3 takes a multiple of the processor time of a plain connection. Here botocore's signer signs a
request, with AWS's Signature Version 4. The connection sends the bytes, and httptools parses the
answer.

A signature is valid for five minutes, so a body is signed once a minute and not for each request
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html).
"""

import contextlib
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

import httptools
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.httpsession import get_cert_path

from benchmarks.clients import Exchange
from benchmarks.errors import BenchmarkError
from slipway.access import Access

_SERVICE: Final = "sagemaker"
_CONNECT_SECONDS: Final = 10.0
_SIGNATURE_SECONDS: Final = 60.0
_READ_BYTES: Final = 65_536
_OK: Final = 200
_LONGEST_MESSAGE_CHARACTERS: Final = 500


@dataclass(frozen=True)
class SignedTarget:
    """The URL of one endpoint's InvokeEndpoint, and who signs the requests to it."""

    url: str
    region: str
    credentials: Callable[[], ReadOnlyCredentials]


def signed_target(access: Access, endpoint_name: str) -> SignedTarget:
    """Returns the target of an endpoint in an account, or on the embedded AWS."""
    meta = access.client("sagemaker-runtime").meta
    url = f"{meta.endpoint_url}/endpoints/{quote(endpoint_name, safe='')}/invocations"
    return SignedTarget(url, meta.region_name, access.credentials)


class SignedRequests:
    """The bytes of signed requests, each body signed once a minute.

    Threads may share it.
    """

    def __init__(self, target: SignedTarget) -> None:
        self.target = target
        self._address = urlsplit(target.url)
        self._signed: dict[bytes, tuple[float, bytes]] = {}

    def of(self, body: bytes) -> bytes:
        """Returns the whole request with a body."""
        now = time.monotonic()
        until, request = self._signed.get(body, (0.0, b""))
        if now >= until:
            request = self._sign(body)
            self._signed[body] = (now + _SIGNATURE_SECONDS, request)
        return request

    def _sign(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = AWSRequest("POST", self.target.url, headers, body)
        SigV4Auth(self.target.credentials(), _SERVICE, self.target.region).add_auth(request)
        lines = [
            f"POST {self._address.path} HTTP/1.1",
            f"Host: {self._address.netloc}",
            *(f"{name}: {value}" for name, value in request.headers.items()),
            f"Content-Length: {len(body)}",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


class _Answer:
    """An answer while it arrives; httptools calls the methods."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.is_complete = False

    def on_body(self, part: bytes) -> None:
        self.parts.append(part)

    def on_message_complete(self) -> None:
        self.is_complete = True


class _Connection:
    """A connection that is opened anew after the service has closed it."""

    def __init__(self, target: SignedTarget, timeout_seconds: float) -> None:
        self._address = urlsplit(target.url)
        self._timeout_seconds = timeout_seconds
        self._tls = (
            ssl.create_default_context(
                cafile=os.environ.get("AWS_CA_BUNDLE") or get_cert_path(True)
            )
            if self._address.scheme == "https"
            else None
        )
        self._socket: socket.socket | None = None

    def open(self) -> None:
        host, port = self._address.hostname or "", self._address.port
        opened = socket.create_connection(
            (host, port or (443 if self._tls else 80)), timeout=_CONNECT_SECONDS
        )
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls:
            opened = self._tls.wrap_socket(opened, server_hostname=host)
        opened.settimeout(self._timeout_seconds)
        self._socket = opened

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Returns the status and the body of the answer."""
        if self._socket is None:
            self.open()
        elif (found := self._try(request)) is not None:
            return found
        else:
            # The service closes a connection that was idle, and the request is not its fault.
            self.close()
            self.open()
        answer = self._try(request)
        if answer is None:
            raise BenchmarkError("a request failed: the connection was closed before an answer")
        return answer

    def _try(self, request: bytes) -> tuple[int, bytes] | None:
        """Returns the answer; None if the connection ended before its first byte."""
        assert self._socket is not None  # noqa: S101  # `exchange` opened it
        answer = _Answer()
        parser = httptools.HttpResponseParser(answer)
        try:
            self._socket.sendall(request)
            data = self._socket.recv(_READ_BYTES)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            return None
        if not data:
            return None
        while data:
            parser.feed_data(data)
            if answer.is_complete:
                break
            data = self._socket.recv(_READ_BYTES)
        else:
            raise BenchmarkError("a request failed: the connection was closed during an answer")
        if not parser.should_keep_alive():
            self.close()
        return parser.get_status_code(), b"".join(answer.parts)


@contextlib.contextmanager
def signed_connection(requests: SignedRequests, timeout_seconds: float) -> Iterator[Exchange]:
    """Opens a connection to an endpoint; gives the function that sends a request.

    Raises:
        BenchmarkError: in the block, if a request fails, or is answered with another status than
            200.
    """
    connection = _Connection(requests.target, timeout_seconds)

    def exchange(body: bytes) -> bytes:
        status, answer = connection.exchange(requests.of(body))
        if status != _OK:
            text = answer.decode("utf-8", "replace")[:_LONGEST_MESSAGE_CHARACTERS]
            raise BenchmarkError(f"a request was answered with {status}: {text}")
        return answer

    try:
        connection.open()
        yield exchange
    except (OSError, httptools.HttpParserError) as error:
        raise BenchmarkError(f"a request failed: {type(error).__name__}: {error}") from None
    finally:
        connection.close()
