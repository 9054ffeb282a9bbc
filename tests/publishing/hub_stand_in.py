"""Stands in for the Hugging Face Hub's HTTP API, and for the host that its large files are on."""

import hashlib
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from flask import Flask, Response, jsonify, request, send_file
from werkzeug.serving import make_server

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


def _application(hub: Hub, host: str) -> Flask:
    application = Flask(host)

    @application.get("/<path:path>")
    def answer(path: str) -> Response:
        authorization = request.headers.get("Authorization")
        hub.requests.append((host, f"/{path}", request.headers.get("Range"), authorization))
        if hub.hangs:
            hub.over.wait()
        if hub.status is not None:
            return Response(status=hub.status, headers=hub.said)
        found = _content(hub, path.removeprefix("blob/")) if host == "storage" else _hub(hub, path)
        found.headers["X-Repo-Commit"] = REVISION
        return found

    return application


def _hub(hub: Hub, path: str) -> Response:
    authorization = request.headers.get("Authorization")
    if hub.token is not None and authorization is None:
        return _refusal(401, "RepoNotFound")
    if hub.token is not None and authorization != f"Bearer {hub.token}":
        said = {"X-Error-Message": "Invalid credentials in Authorization header"}
        return Response(status=401, headers=said)
    if hub.gated and (hub.hidden or "/resolve/" in path):
        return _refusal(403 if authorization else 401, "GatedRepo")
    if REPOSITORY not in path:
        return _refusal(404, "RepoNotFound")
    if path.startswith(f"api/models/{REPOSITORY}/revision/") and path.endswith(("/main", REVISION)):
        return jsonify({"id": REPOSITORY, "sha": REVISION})
    if REVISION not in path:
        return _refusal(404, "RevisionNotFound")
    if path.startswith("api/models/"):
        return jsonify(hub.tree())
    name = path.partition(f"/resolve/{REVISION}/")[2]
    if name in hub.lost:
        return _refusal(404, "EntryNotFound")
    if len(hub.files[name]) < LARGE_BYTES:
        return _content(hub, name)
    return Response(status=302, headers={"Location": f"{hub.storage_url}/blob/{name}"})


def _content(hub: Hub, name: str) -> Response:
    content = hub.files[name]
    if name in hub.spoil:
        content = content[:-1] + bytes([content[-1] ^ 1])
    found = send_file(BytesIO(content), "application/octet-stream")
    if len(content) >= LARGE_BYTES and hub.breaks:
        hub.breaks -= 1
        # The length stays: the connection is closed before all of it came.
        found.response = [b"".join(found.response)[: hub.break_after_bytes]]
    return found


def _refusal(status: int, code: str) -> Response:
    return Response(status=status, headers={"X-Error-Code": code})


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serves the Hub and its storage, which is another host."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    servers = [
        make_server("127.0.0.1", 0, _application(hub, host), threaded=True)
        for host in ("hub", "storage")
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
