"""The server before Triton: it bounds the size, the depth and the number of requests.

One request can end Triton before 26.05: its JSON parser calls itself for each level of nesting
until its stack is full. Compressed, chunked and odd requests ended others. So Triton listens on
loopback alone, and each request is written anew for it: one POST with a Content-Length, without the
client's other headers. Triton never sees what this server reads in another way.

This module keeps to Python 3.10.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import uvloop
from starlette.requests import ClientDisconnect, Request

from containers.serving.errors import (
    InvalidRequestError,
    NotReadyError,
    QueueFullError,
    ServingError,
    SlowRequestError,
    UnsupportedMediaTypeError,
    classify,
)
from containers.serving.listening import HttpServer, listen
from containers.serving.memory import MemoryGuard, ProcessMemory, read_body
from containers.triton.settings import TritonSettings

_LOOPBACK: Final = "127.0.0.1"
_BODY_SECONDS: Final = 60
# SageMaker sends SIGKILL 30 s after SIGTERM, and Triton needs some of them for itself.
_DRAIN_SECONDS: Final = 20
_LARGEST_HEAD_BYTES: Final = 64 * 1024
_NO_ANSWER: Final = (OSError, EOFError, LookupError, ValueError, asyncio.LimitOverrunError)

# A tensor of a request lies three deep, and its elements a level deeper for each dimension.
_MOST_LEVELS: Final = 64
# Objects are tensors and their parameters.
_MOST_OBJECTS: Final = 1024
# A bracket becomes one level more or less: 1, or -1 as a signed byte.
_STEPS: Final = bytes.maketrans(b"[{]}", b"\1\1\xff\xff")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[{]}"))

_BINARY: Final = "application/vnd.sagemaker-triton.binary+json"
_BINARY_TYPE: Final = re.compile(re.escape(_BINARY) + r"\s*;\s*json-header-size=([0-9]{1,10})")
_LENGTH_HEADER: Final = b"inference-header-content-length"


def check_json(document: bytes) -> None:
    """Raises `InvalidRequestError` for more levels or objects than Triton's parser can read."""
    # Most requests have few brackets, and need no second look.
    if document.count(b"[") + document.count(b"{") <= _MOST_LEVELS:
        return
    unescaped = document.replace(b"\\\\", b"").replace(b'\\"', b"")
    content = np.frombuffer(unescaped, np.uint8)
    is_in_text = np.logical_xor.accumulate(content == ord('"'))
    brackets = content[~is_in_text].tobytes().translate(None, _NO_BRACKETS)
    levels = np.frombuffer(brackets.translate(_STEPS), np.int8).cumsum(dtype=np.int32)
    if levels.max(initial=0) > _MOST_LEVELS:
        raise InvalidRequestError(f"The JSON is nested more than {_MOST_LEVELS} levels deep.")
    if brackets.count(b"{") > _MOST_OBJECTS:
        raise InvalidRequestError(f"The JSON has more than {_MOST_OBJECTS} objects.")


class Guard:
    """Serves /ping and /invocations, and asks Triton on its port of loopback.

    Raises `ListenError` if the port of the requests cannot be opened.
    """

    def __init__(self, settings: TritonSettings, triton_port: int, copies: int) -> None:
        self._triton = _Triton(triton_port)
        self._path = f"/v2/models/{quote(settings.model_name)}/infer"
        self._max_queue_length = settings.max_queue_length
        self._max_in_flight = settings.max_queue_length + copies * settings.max_batch_size
        self._in_flight = 0
        self._max_request_bytes = settings.max_request_bytes
        self._memory = MemoryGuard.of(ProcessMemory(), max_request_bytes=settings.max_request_bytes)
        self._listener = listen(settings.bind_address, settings.port)
        self._uvicorn = HttpServer(self._serve, _DRAIN_SECONDS)

    def run(self) -> None:
        """Serves until `stop`, and until the requests in flight are answered."""
        loop = uvloop.new_event_loop()
        loop.run_until_complete(self._uvicorn.serve(sockets=[self._listener]))
        loop.run_until_complete(self._triton.close())

    def stop(self) -> None:
        """Makes `run` return; a signal handler may call it."""
        self._uvicorn.should_exit = True

    # Any: ASGI's own types.
    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        request, retry = Request(scope, receive), None
        try:
            status, kind, content = await self._answer(request)
        except ClientDisconnect:
            return
        except ServingError as error:
            found, message = classify(error)
            status, kind, retry = found.status, b"application/json", found.retry_after_seconds
            # As Triton writes an error.
            content = json.dumps({"error": message}).encode()
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(content))]
        headers += [] if retry is None else [(b"retry-after", b"%d" % retry)]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _answer(self, request: Request) -> tuple[int, bytes, bytes]:
        asked = (request.method, request.scope["path"])
        if asked == ("GET", "/ping"):
            status, _, content = await self._triton.ask("GET", "/v2/health/ready")
            return status, b"application/json", content
        if asked != ("POST", "/invocations"):
            message = "The paths of this server are GET /ping and POST /invocations."
            return 404, b"application/json", json.dumps({"error": message}).encode()
        self._check_queue()
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise UnsupportedMediaTypeError("Send the body uncompressed.")
        content_type = request.headers.get("content-type", "").strip()
        with self._memory.body(self._in_flight) as reservation:
            try:
                body = await asyncio.wait_for(
                    read_body(request, self._max_request_bytes, reservation), _BODY_SECONDS
                )
            except asyncio.TimeoutError as error:  # noqa: UP041  (another class in Python 3.10)
                message = f"The body did not arrive within {_BODY_SECONDS} seconds."
                raise SlowRequestError(message) from error
            headers, length = "", len(body)
            if content_type.startswith(_BINARY):
                match = _BINARY_TYPE.fullmatch(content_type)
                if match is None or int(match[1]) > length:
                    raise InvalidRequestError("The content type has no usable json-header-size.")
                length = int(match[1])
                headers = f"Inference-Header-Content-Length: {length}\r\n"
            check_json(body[:length])
            self._check_queue()
            self._in_flight += 1
            try:
                status, found, content = await self._triton.ask("POST", self._path, headers, body)
            finally:
                self._in_flight -= 1
        if size := found.get(_LENGTH_HEADER):
            return status, f"{_BINARY};json-header-size=".encode() + size, content
        return status, b"application/json", content

    def _check_queue(self) -> None:
        if self._in_flight >= self._max_in_flight:
            raise QueueFullError(
                f"The queue is full: at most {self._max_queue_length} requests may wait."
            )


class _Triton:
    """Connections to Triton's HTTP interface, which are kept."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def close(self) -> None:
        """Closes the connections, for whose end Triton waits before its own."""
        for _, writer in self._idle:
            writer.close()
        closed = (writer.wait_closed() for _, writer in self._idle)
        await asyncio.gather(*closed, return_exceptions=True)

    async def ask(
        self, method: str, path: str, headers: str = "", body: bytes = b""
    ) -> tuple[int, Mapping[bytes, bytes], bytes]:
        """Returns the status, the headers in lower case, and the body of Triton's answer.

        `headers` are lines beside the length of the body. Raises `NotReadyError` if Triton does not
        answer.
        """
        head = f"{method} {path} HTTP/1.1\r\nHost: triton\r\nContent-Length: {len(body)}\r\n"
        try:
            while self._idle:
                reader, writer = self._idle.pop()
                if not reader.at_eof():
                    break
                # Triton has closed it since its last answer.
                writer.close()
            else:
                reader, writer = await asyncio.open_connection(
                    _LOOPBACK, self._port, limit=_LARGEST_HEAD_BYTES
                )
            try:
                writer.write(f"{head}{headers}\r\n".encode() + body)
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
                found = dict(line.lower().split(b": ", 1) for line in lines if line)
                content = await reader.readexactly(int(found[b"content-length"]))
            except BaseException:
                # An answer that is still to come would be another request's.
                writer.close()
                raise
        except _NO_ANSWER as error:
            raise NotReadyError("Triton does not answer.") from error
        if found.get(b"connection") == b"close":
            writer.close()
        else:
            self._idle.append((reader, writer))
        return int(first.split(b" ")[1]), found, content
