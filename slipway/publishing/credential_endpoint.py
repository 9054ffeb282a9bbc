"""Passes the credentials that boto3 resolved to s5cmd, and renews them while an upload runs.

s5cmd has the AWS SDK for Go, version 1.44.298, which resolves credentials by itself. That SDK knows
no `aws login` and cannot ask for an MFA code. It asks no container credentials endpoint except on
loopback.

s5cmd therefore gets its credentials from here: an HTTP server on loopback that speaks the protocol
of container credentials (`AWS_CONTAINER_CREDENTIALS_FULL_URI`). The SDK asks it again five minutes
before credentials expire. Every kind of credentials that boto3 can use works this way. No
credentials are written to a file, to an argument of a process or to its environment.

Sources, read 2026-11-22: aws-sdk-go v1.44.298 `aws/defaults/defaults.go` and
`aws/credentials/endpointcreds/provider.go`; s5cmd v2.3.0 `storage/s3.go`;
https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
"""

import functools
import hmac
import json
import secrets
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Self

from botocore.credentials import ReadOnlyCredentials

# The SDK asks again five minutes before the end of this time, so after one minute. botocore renews
# credentials ten minutes before they expire (`aws login`: five), so what s5cmd has in that minute
# is still valid.
LEASE_SECONDS = 360

_PATH = "/credentials"


class _Server(ThreadingHTTPServer):
    """An HTTP server that looks up no names and prints nothing."""

    def server_bind(self) -> None:
        """Binds without `http.server`'s look-up of the host's name, which asks a DNS server."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a client that disconnected in the middle: s5cmd may be killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class CredentialEndpoint:
    """Answers s5cmd's requests for credentials on loopback, as a context manager."""

    def __init__(
        self, credentials: Callable[[], ReadOnlyCredentials], lease_seconds: float = LEASE_SECONDS
    ) -> None:
        self._credentials = credentials
        self._lease = timedelta(seconds=lease_seconds)
        # Any user of this machine can connect to a port on loopback; only the child knows this.
        self._token = secrets.token_urlsafe(32)
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.failure: Exception | None = None

    @property
    def variables(self) -> dict[str, str]:
        address = f"http://127.0.0.1:{self._server.server_port}{_PATH}"
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": address,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": self._token,
        }

    def __enter__(self) -> Self:
        serve = functools.partial(self._server.serve_forever, poll_interval=0.05)
        self._thread = threading.Thread(target=serve, name="credential-endpoint", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str | None]]:
        """Returns the status and the JSON body for one request."""
        if not hmac.compare_digest(authorization.encode(), self._token.encode()):
            return 401, {"code": "Unauthorized", "message": "the authorization token is wrong"}
        if path != _PATH:
            return 404, {"code": "NotFound", "message": "nothing is here"}
        try:
            frozen = self._credentials()
        # The user's own programs, files and networks are behind this call: whatever it raises is
        # told to the user when s5cmd has ended. The status is one that s5cmd does not retry.
        except Exception as error:
            self.failure = error
            return 400, {"code": "CredentialsNotRenewed", "message": str(error)}
        expiration = datetime.now(UTC) + self._lease
        return 200, {
            "AccessKeyId": frozen.access_key,
            "SecretAccessKey": frozen.secret_key,
            "Token": frozen.token,
            "Expiration": expiration.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, answer = endpoint.answer(self.path, self.headers.get("Authorization", ""))
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Writes nothing: requests are no news, and nothing of them belongs in a log."""

        return Handler
