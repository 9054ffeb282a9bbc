"""Requests to an endpoint's InvokeEndpoint that cost a load driver little.

boto3 takes a multiple of the processor time of a plain connection. Here botocore's signer signs a
request, with AWS's Signature Version 4, and `connections` sends the bytes.

A signature is valid for five minutes, so a body is signed once a minute and not for each request
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from slipway.access import Access

_SERVICE: Final = "sagemaker"
_SIGNATURE_SECONDS: Final = 60.0


@dataclass(frozen=True)
class SignedTarget:
    """Where requests go, and who signs them.

    Args:
        url: of one endpoint's InvokeEndpoint.
        region: of the endpoint.
        credentials: returns the present ones; called once for each signature.
        headers: of each request, beside its content type.
        content_type: of each request.
    """

    url: str
    region: str
    credentials: Callable[[], ReadOnlyCredentials]
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"


def signed_target(
    access: Access,
    endpoint_name: str,
    *,
    stream: bool = False,
    variant: str | None = None,
    component: str | None = None,
    content_type: str = "application/json",
) -> SignedTarget:
    """Returns the target of an endpoint in an account, or on the embedded AWS.

    Args:
        access: to the endpoint's account.
        endpoint_name: of the endpoint.
        stream: whether the answer comes in parts (InvokeEndpointWithResponseStream).
        variant: production variant; None for a choice by weight.
        component: the inference component of an endpoint that scales to zero.
        content_type: of the requests.
    """
    meta = access.client("sagemaker-runtime").meta
    operation = "invocations-response-stream" if stream else "invocations"
    url = f"{meta.endpoint_url}/endpoints/{quote(endpoint_name, safe='')}/{operation}"
    named = {
        "X-Amzn-SageMaker-Target-Variant": variant,
        "X-Amzn-SageMaker-Inference-Component": component,
    }
    headers = tuple((name, value) for name, value in named.items() if value is not None)
    return SignedTarget(url, meta.region_name, access.credentials, headers, content_type)


class SignedRequests:
    """The bytes of signed requests, each body signed once a minute."""

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
        given = {"Content-Type": self.target.content_type, "Accept": "application/json"}
        headers = {**given, **dict(self.target.headers)}
        request = AWSRequest("POST", self.target.url, headers, body)
        SigV4Auth(self.target.credentials(), _SERVICE, self.target.region).add_auth(request)
        lines = [
            f"POST {self._address.path} HTTP/1.1",
            f"Host: {self._address.netloc}",
            *(f"{name}: {value}" for name, value in request.headers.items()),
            f"Content-Length: {len(body)}",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body
