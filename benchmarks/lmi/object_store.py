"""A read-only S3 that is not the bottleneck: ListObjectsV2, HEAD and ranged GET, from files.

    python -m benchmarks.lmi.object_store catalogue.json

The kernel copies from the page cache to the socket (sendfile), so this process spends next to
nothing per byte. It knows one bucket, checks no signature and keeps no connection waiting. Use it
for benchmarks only: it trusts every client that can reach its port on the loopback interface.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from benchmarks.errors import BenchmarkError
from benchmarks.lmi.checkpoint import Piece, StoredObject
from benchmarks.servers import LoopbackServer, printed_port

BUCKET = "weights"
_REGION = "us-east-1"
_READ_SECONDS = 30.0
_READ_BYTES = 1024 * 1024
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_MODIFIED = "2026-01-01T00:00:00.000Z"
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class _Store(ThreadingHTTPServer):
    """The listening socket, with the objects to read."""

    # A client opens as many connections at once as it fetches parts.
    request_queue_size = 512
    daemon_threads = True

    def __init__(self, objects: Sequence[StoredObject]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects = {each.key: each for each in objects}


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    # With a buffer, sendfile's body would overtake the header.
    wbufsize = 0
    disable_nagle_algorithm = True
    server: _Store

    def do_GET(self) -> None:
        """Answers with a list, with an object or with a part of it; HEAD without the body."""
        bucket, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        if bucket == BUCKET and not key:
            self._list()
        elif found := self.server.objects.get(key):
            self._object(found)
        else:
            self._fail(HTTPStatus.NOT_FOUND, "NoSuchKey")

    do_HEAD = do_GET  # noqa: N815  # as `http.server` calls it

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing, because logging would be part of the measured times."""

    def _list(self) -> None:
        [prefix] = parse_qs(urlsplit(self.path).query).get("prefix", [""])
        found = [
            each for key, each in sorted(self.server.objects.items()) if key.startswith(prefix)
        ]
        contents = "".join(
            f"<Contents><Key>{escape(each.key)}</Key><LastModified>{_MODIFIED}</LastModified>"
            f"<ETag>&quot;{_tag(each)}&quot;</ETag><Size>{each.size_bytes}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
            for each in found
        )
        self._document(
            HTTPStatus.OK,
            f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="{_NAMESPACE}">'
            f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(found)}"
            f"</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{contents}"
            "</ListBucketResult>",
        )

    def _object(self, found: StoredObject) -> None:
        size, asked = found.size_bytes, self.headers.get("Range")
        part = (0, size - 1) if asked is None else _range(asked, size)
        if part is None:
            self._fail(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "InvalidRange")
            return
        first, last = part
        headers = {
            "ETag": f'"{_tag(found)}"',
            "Last-Modified": formatdate(0, usegmt=True),
            "Accept-Ranges": "bytes",
            "Content-Type": "binary/octet-stream",
        }
        if asked is not None:
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        status = HTTPStatus.OK if asked is None else HTTPStatus.PARTIAL_CONTENT
        self._begin(status, last + 1 - first, headers)
        if self.command == "HEAD":
            return
        try:
            for piece, offset, count in _slices(found, first, last + 1):
                with piece.file.open("rb") as file:
                    self.connection.sendfile(file, offset, count)
        except ConnectionError:
            # A client may close the connection before it has received everything.
            self.close_connection = True

    def _fail(self, status: HTTPStatus, code: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>{status.phrase}</Message></Error>"
        self._document(status, text)

    def _document(self, status: HTTPStatus, text: str) -> None:
        body = text.encode()
        self._begin(status, len(body), {"Content-Type": "application/xml"})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _begin(self, status: HTTPStatus, length: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        all_headers = {"Content-Length": str(length), "x-amz-bucket-region": _REGION, **headers}
        for name, value in all_headers.items():
            self.send_header(name, value)
        self.end_headers()


def _tag(found: StoredObject) -> str:
    # In the form of an object that was uploaded in parts: no client takes it for a hash of the
    # content.
    return f"{'0' * 32}-{len(found.pieces)}"


def _range(text: str, size: int) -> tuple[int, int] | None:
    """Parses `bytes=first-last`, the form of S3 clients for parts; returns None for any other."""
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    first, last = int(found[1]), min(int(found[2] or size - 1), size - 1)
    return (first, last) if first <= last else None


def _slices(found: StoredObject, begin: int, end: int) -> Iterator[tuple[Piece, int, int]]:
    """Yields the part of each piece that lies in a range: the piece, its offset, its length."""
    at = 0
    for piece in found.pieces:
        first, last = max(begin, at), min(end, at + piece.length_bytes)
        if first < last:
            yield piece, first - at, last - first
        at += piece.length_bytes


class ObjectStore(LoopbackServer):
    """The store in a process of its own; use it as a context."""

    def __init__(
        self, objects: Sequence[StoredObject], log: Path, variables: Mapping[str, str]
    ) -> None:
        catalogue = log.with_suffix(".json")
        document = [
            {"key": each.key, "pieces": [[str(p.file), p.length_bytes] for p in each.pieces]}
            for each in objects
        ]
        catalogue.write_text(json.dumps(document), "utf-8")
        arguments = ("-m", "benchmarks.lmi.object_store", str(catalogue))
        super().__init__(arguments, log, variables, printed_port)

    @property
    def url(self) -> str:
        """Returns the URL of the service, without the bucket."""
        return f"http://127.0.0.1:{self.port}"

    def read(self, key: str, take: Callable[[memoryview], object]) -> None:
        """Reads an object with one GET."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_READ_SECONDS)
        try:
            connection.request("GET", f"/{BUCKET}/{key}")
            response = connection.getresponse()
            if response.status != HTTPStatus.OK:
                raise BenchmarkError(f"{key} was answered with {response.status}")
            missing = int(response.headers["Content-Length"])
            buffer = memoryview(bytearray(_READ_BYTES))
            while missing:
                count = response.readinto(buffer)
                if not count:
                    raise BenchmarkError(f"{key} ended {missing} bytes early")
                take(buffer[:count])
                missing -= count
        finally:
            connection.close()

    def raw_bytes_per_second(self, key: str, connections: int) -> float:
        """Reads an object over that many connections at once and throws it away."""
        counts: list[int] = []
        started_at = time.perf_counter()
        with ThreadPoolExecutor(connections) as pool:
            readers = [
                pool.submit(self.read, key, lambda part: counts.append(len(part)))
                for _ in range(connections)
            ]
        seconds = time.perf_counter() - started_at
        for reader in readers:
            if error := reader.exception():
                raise BenchmarkError(f"reading from the local S3 failed: {error}")
        return sum(counts) / seconds


# Any: JSON.
def _objects(document: Sequence[Mapping[str, Any]]) -> list[StoredObject]:
    return [
        StoredObject(
            each["key"], tuple(Piece(Path(file), length) for file, length in each["pieces"])
        )
        for each in document
    ]


if __name__ == "__main__":
    store = _Store(_objects(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
    print(store.server_address[1], flush=True)
    store.serve_forever()
