"""A stand-in for the parts of AWS that give out credentials, and an S3 that notes who asks.

moto has no container endpoint, and its S3 does not say with which credentials a request came.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

ACCOUNT = "123456789012"
CONTAINER_TOKEN = "the-containers-token"  # noqa: S105  # worth nothing
INSTANCE_TOKEN = "the-instances-token"  # noqa: S105  # worth nothing
INSTANCE_ROLES = "/latest/meta-data/iam/security-credentials/"


@dataclass(frozen=True)
class Seen:
    """One request to S3, with the credentials that signed it, and the names in its query."""

    method: str
    access_key: str
    session_token: str
    query: tuple[str, ...]


@dataclass
class StandIn:
    """What the stand-in was asked, in order, and how often it gave out credentials."""

    url: str
    seen: list[Seen] = field(default_factory=list)
    actions: list[dict[str, str]] = field(default_factory=list)
    credentials_given: int = 0

    def keys(self) -> set[str]:
        return {request.access_key for request in self.seen}

    def issue(self, source: str) -> dict[str, str]:
        self.credentials_given += 1
        end = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
        return {
            "AccessKeyId": f"ASIA{source}",
            "SecretAccessKey": f"secret-of-{source}",
            "Token": f"token-of-{source}",
            "Expiration": end.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


@contextmanager
def started() -> Iterator[StandIn]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    stand_in = StandIn(f"http://127.0.0.1:{server.server_port}")
    _Handler.stand_ins[server] = stand_in
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        del _Handler.stand_ins[server]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stand_ins: ClassVar[dict[object, StandIn]] = {}

    @property
    def stand_in(self) -> StandIn:
        return self.stand_ins[self.server]

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/container":
            if self.headers.get("Authorization") != CONTAINER_TOKEN:
                self._send(401, '{"code": "Unauthorized", "message": "wrong token"}')
                return
            credentials = self.stand_in.issue("CONTAINER")
            self._send(200, json.dumps(credentials))
        elif path.startswith(INSTANCE_ROLES):
            assert self.headers["x-aws-ec2-metadata-token"] == INSTANCE_TOKEN
            self._instance(path.removeprefix(INSTANCE_ROLES))
        else:
            self._send(404, "")

    def _instance(self, role: str) -> None:
        """Answers as an instance's metadata: the role's name, then its credentials."""
        if not role:
            self._send(200, "publisher")
            return
        self._send(200, json.dumps({"Code": "Success", **self.stand_in.issue("INSTANCE")}))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        address = urlsplit(self.path)
        if address.path == "/":
            self._sts({name: values[0] for name, values in parse_qs(body.decode()).items()})
            return
        self._note()
        if "uploads" in address.query:
            self._send(200, "<InitiateMultipartUploadResult><UploadId>1</UploadId>"
                       "</InitiateMultipartUploadResult>")  # fmt: skip
        else:
            self._send(200, "<CompleteMultipartUploadResult><ETag>e</ETag>"
                       "</CompleteMultipartUploadResult>")  # fmt: skip

    def do_PUT(self) -> None:
        if self.path == "/latest/api/token":
            self._send(200, INSTANCE_TOKEN)
            return
        left = int(self.headers.get("Content-Length", 0))
        while left:
            left -= len(self.rfile.read(min(left, 1 << 20)))
        self._note()
        self._send(200, "")

    def do_DELETE(self) -> None:
        self._send(204, "")

    def _note(self) -> None:
        signed = re.search(r"Credential=([^/]+)/", self.headers.get("Authorization", ""))
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        self.stand_in.seen.append(
            Seen(
                self.command,
                signed.group(1) if signed else "",
                self.headers.get("X-Amz-Security-Token", ""),
                tuple(sorted(query)),
            )
        )

    def _sts(self, parameters: dict[str, str]) -> None:
        action = parameters["Action"]
        self.stand_in.actions.append(parameters)
        if action == "GetCallerIdentity":
            result = f"<Account>{ACCOUNT}</Account><Arn>a</Arn><UserId>u</UserId>"
        else:
            given = self.stand_in.issue(action.upper())
            given["SessionToken"] = given.pop("Token")
            fields = "".join(f"<{name}>{value}</{name}>" for name, value in given.items())
            result = (
                f"<Credentials>{fields}</Credentials><AssumedRoleUser>"
                f"<Arn>arn:aws:sts::{ACCOUNT}:assumed-role/r/s</Arn>"
                "<AssumedRoleId>i:s</AssumedRoleId></AssumedRoleUser>"
            )
        self._send(200, f"<{action}Response><{action}Result>{result}</{action}Result>"
                   f"</{action}Response>")  # fmt: skip

    def _send(self, status: int, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", '"e"')
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass
