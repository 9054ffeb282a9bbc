"""A connection to an endpoint's InvokeEndpoint that costs a load driver little.

boto3 takes a multiple of the processor time of a plain connection. Here botocore's signer signs a
request, with AWS's Signature Version 4, and `connections` sends the bytes.

A signature is valid for five minutes, so a body is signed once a minute and not for each request
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html).
"""

import os
import ssl
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.httpsession import get_cert_path

from benchmarks.connections import Exchange, connected
from slipway.access import Access

_SERVICE: Final = "sagemaker"
_SIGNATURE_SECONDS: Final = 60.0


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


def signed_connection(
    requests: SignedRequests, timeout_seconds: float
) -> AbstractContextManager[Exchange]:
    """Opens a connection to an endpoint; connections may share the requests."""
    address = urlsplit(requests.target.url)
    tls = None
    if address.scheme == "https":
        bundle = os.environ.get("AWS_CA_BUNDLE") or get_cert_path(True)
        tls = ssl.create_default_context(cafile=bundle)
    port = address.port or (443 if tls else 80)
    return connected(address.hostname or "", port, requests.of, timeout_seconds, tls)
