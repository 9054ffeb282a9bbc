"""Requests to an endpoint's InvokeEndpoint that cost a load driver little.

boto3 takes a multiple of the processor time of a plain connection. Here botocore's signer signs a
request, with AWS's Signature Version 4, and `connections` sends the bytes.

A signature is valid for five minutes, so a body is signed once a minute and not for each request
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import quote, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from slipway.access import Access

_SERVICE: Final = "sagemaker"
_SIGNATURE_SECONDS: Final = 60.0
_JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}


@dataclass
class SignedRequests:
    """The bytes of signed requests, each body signed once a minute with the present credentials."""

    url: str
    region: str
    credentials: Callable[[], ReadOnlyCredentials]
    headers: Mapping[str, str] = field(default_factory=lambda: _JSON)
    _signed: dict[bytes, tuple[float, bytes]] = field(default_factory=dict)

    def of(self, body: bytes) -> bytes:
        now = time.monotonic()
        until, request = self._signed.get(body, (0.0, b""))
        if now >= until:
            request = self._sign(body)
            self._signed[body] = (now + _SIGNATURE_SECONDS, request)
        return request

    def _sign(self, body: bytes) -> bytes:
        request = AWSRequest("POST", self.url, dict(self.headers), body)
        SigV4Auth(self.credentials(), _SERVICE, self.region).add_auth(request)
        address = urlsplit(self.url)
        lines = [
            f"POST {address.path} HTTP/1.1",
            f"Host: {address.netloc}",
            *(f"{name}: {value}" for name, value in request.headers.items()),
            f"Content-Length: {len(body)}",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


def signed_requests(
    access: Access,
    endpoint_name: str,
    headers: Mapping[str, str | None] = MappingProxyType({}),
    *,
    stream: bool = False,
) -> SignedRequests:
    """Returns the requests to an endpoint in an account, or on the embedded AWS.

    A header that is None is left out. A stream's answer comes in parts
    (InvokeEndpointWithResponseStream).
    """
    meta = access.client("sagemaker-runtime").meta
    operation = "invocations-response-stream" if stream else "invocations"
    url = f"{meta.endpoint_url}/endpoints/{quote(endpoint_name, safe='')}/{operation}"
    given = {name: value for name, value in headers.items() if value is not None}
    return SignedRequests(url, meta.region_name, access.credentials, {**_JSON, **given})
