"""Stands in for the Hugging Face Hub's HTTP API, and for the host that its large files are on."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REPOSITORY = "acme/gpt2"
REVISION = "ae7c9136adc7555eeccc78cdd960dfd60fb346ce"
# From this size on the real Hub keeps files elsewhere, by their SHA-256.
LARGE_BYTES = 10_000


@dataclass
class Hub:
    """What the stand-in has and does.

    Without `token` the repository is public. A gated one's conditions were not accepted; unless
    `hidden`, they count for files alone. A large file's connection is closed after
    `break_after_bytes`, so often as `breaks` says. Every request gets `status` with the headers
    `said`. Files of `spoil` have other content than the commit says, and `lost` ones are listed
    alone. `requests` have host, path, Range and Authorization.
    """

    files: dict[str, bytes]
    token: str | None = None
    gated: bool = False
    hidden: bool = True
    break_after_bytes: int = 0
    breaks: int = 0
    spoil: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    status: int | None = None
    said: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    over: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str, str | None, str | None]] = field(default_factory=list)
    url: str = ""
    storage_url: str = ""

    def tree(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [{"type": "directory", "path": "onnx", "oid": "0" * 40}]
        for path, content in self.files.items():
            git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
            row = {"type": "file", "path": path, "size": len(content), "oid": git.hexdigest()}
            if len(content) >= LARGE_BYTES:
                row["lfs"] = {
                    "oid": hashlib.sha256(content).hexdigest(),
                    "size": len(content),
                    "pointerSize": 134,
                }
            rows.append(row)
        return rows

    def asked_for(self, part: str) -> list[tuple[str, str | None]]:
        """Path and Range of the requests to the storage host whose path has that part."""
        return [(path, range_) for host, path, range_, _ in self.requests
                if host == "storage" and part in path]  # fmt: skip


def _handler(hub: Hub, host: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            authorization = self.headers.get("Authorization")
            path = self.path.partition("?")[0]
            hub.requests.append((host, path, self.headers.get("Range"), authorization))
            if hub.hangs:
                hub.over.wait()
                return None
            if hub.status is not None:
                return self.answer(hub.status, b"", **hub.said)
            if host == "storage":
                return self.send_content(path.removeprefix("/blob/"))
            if hub.token is not None and authorization is None:
                return self.refuse(401, "RepoNotFound")
            if hub.token is not None and authorization != f"Bearer {hub.token}":
                return self.refuse(401, "", "Invalid credentials in Authorization header")
            if hub.gated and (hub.hidden or "/resolve/" in path):
                return self.refuse(403 if authorization else 401, "GatedRepo")
            if REPOSITORY not in path:
                return self.refuse(404, "RepoNotFound")
            if path == f"/api/models/{REPOSITORY}/revision/main":
                return self.answer(200, json.dumps({"id": REPOSITORY, "sha": REVISION}).encode())
            if REVISION not in path:
                return self.refuse(404, "RevisionNotFound")
            if path == f"/api/models/{REPOSITORY}/revision/{REVISION}":
                return self.answer(200, json.dumps({"id": REPOSITORY, "sha": REVISION}).encode())
            if path.startswith("/api/models/"):
                return self.answer(200, json.dumps(hub.tree()).encode())
            name = path.partition(f"/resolve/{REVISION}/")[2]
            if name in hub.lost:
                return self.refuse(404, "EntryNotFound")
            if len(hub.files[name]) < LARGE_BYTES:
                return self.send_content(name)
            return self.answer(302, b"", Location=f"{hub.storage_url}/blob/{name}")

        def send_content(self, name: str) -> None:
            content = hub.files[name]
            if name in hub.spoil:
                content = content[:-1] + bytes([content[-1] ^ 1])
            first, _, last = (self.headers.get("Range") or "bytes=0-")[6:].partition("-")
            start, end = int(first), int(last) + 1 if last else len(content)
            rest = content[start:end]
            status, headers = 200, {}
            if start or last:
                status = 206
                headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
            if len(content) >= LARGE_BYTES and hub.breaks:
                hub.breaks -= 1
                self.begin(status, len(rest), headers)
                self.wfile.write(rest[: hub.break_after_bytes])
                self.close_connection = True
                return
            self.answer(status, rest, **headers)

        def refuse(self, status: int, code: str, message: str = "") -> None:
            headers = {"X-Error-Code": code} if code else {}
            if message:
                headers["X-Error-Message"] = message
            self.answer(status, b'{"error": "no"}', **headers)

        def answer(self, status: int, body: bytes, **headers: str) -> None:
            self.begin(status, len(body), headers)
            if self.command != "HEAD":
                self.wfile.write(body)

        def begin(self, status: int, length: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.send_header("X-Repo-Commit", REVISION)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serves the Hub and its storage, which is another host."""
    servers = [
        ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub, host)) for host in ("hub", "storage")
    ]
    hub.url, hub.storage_url = (f"http://127.0.0.1:{server.server_port}" for server in servers)
    threads = [threading.Thread(target=server.serve_forever, args=(0.02,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        hub.over.set()
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()
