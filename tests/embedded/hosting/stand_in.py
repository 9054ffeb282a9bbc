"""A container's program for tests: the contract, with a mode for each way to fail at it.

MODE (from the model's Environment, or a file `mode` in its model directory): ok, slow (ready after
half a second), unready (never), dead (ends at start), stubborn (ignores SIGTERM), failing (answers
every request with 500), lagging (answers after 2 s), silent (never answers). A request's body
asks for more: `exit`, `cut` (the connection breaks within the answer), `error STATUS TEXT`, `sleep
SECONDS`, `large BYTES`, `environment`, `files`, `headers`, `pid`, `refuse SECONDS` (it closes its
port, and ends so much later), `stream PART ...` (a chunk for each, except that `until=FILE` waits
for a file; then what the last says: `end`, `break` or `hang`); anything else is echoed with the
MARK variable in front, or with the adapter's file `mark`.

It has the adapter API of DJL Serving: POST /adapters with `name` and `src`, DELETE /adapters/NAME.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

MODE_FILE = Path(os.environ.get("SM_MODEL_DIR", "")) / "mode"
MODE = os.environ.get("MODE") or (MODE_FILE.read_text() if MODE_FILE.is_file() else "ok")
BEGUN = time.monotonic()
PATIENCE_SECONDS = 30.0
STOPPED = threading.Event()
ADAPTERS: dict[str, str] = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        ready = MODE != "unready" and (MODE != "slow" or time.monotonic() > BEGUN + 0.5)
        self.answer(200 if ready else 503, b"")

    def do_DELETE(self) -> None:
        del ADAPTERS[self.path.rpartition("/")[2]]
        self.answer(200, b"")

    def do_POST(self) -> None:
        if self.path.startswith("/adapters?"):
            asked = dict(parse_qsl(urlsplit(self.path).query))
            file = Path(asked["src"], "mark")
            if file.is_file():
                ADAPTERS[asked["name"]] = file.read_text()
            self.answer(200 if file.is_file() else 424, b"no adapter there")
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        word, _, rest = body.decode(errors="replace").partition(" ")
        if MODE == "failing":
            self.answer(500, b"out of order")
            return
        if MODE == "lagging":
            time.sleep(2)
        if MODE == "silent":
            STOPPED.wait(PATIENCE_SECONDS)
            self.close_connection = True
            return
        if word == "exit":
            os._exit(3)
        if word == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "10")
            self.end_headers()
            self.wfile.write(b"half")
            self.close_connection = True
        elif word == "error":
            status, _, text = rest.partition(" ")
            print(f"failing with {status}", flush=True)
            self.answer(int(status), text.encode())
        elif word == "sleep":
            time.sleep(float(rest))
            self.answer(200, b"slept")
        elif word == "large":
            self.answer(200, b"x" * int(rest))
        elif word == "environment":
            self.answer(200, json.dumps(dict(os.environ)).encode())
        elif word == "files":
            self.answer(200, json.dumps(model_files()).encode())
        elif word == "headers":
            self.answer(200, json.dumps({k.lower(): v for k, v in self.headers.items()}).encode())
        elif word == "pid":
            self.answer(200, str(os.getpid()).encode())
        elif word == "refuse":
            self.server.shutdown()
            self.server.socket.close()
            # The caller sees the connection end now, and not with the process.
            self.connection.shutdown(socket.SHUT_RDWR)
            time.sleep(float(rest))
            os._exit(3)
        elif word == "stream":
            self.stream(rest.split(" "))
        else:
            adapter = self.headers.get("X-Amzn-SageMaker-Adapter-Identifier")
            mark = os.environ.get("MARK", "") if adapter is None else ADAPTERS[adapter]
            self.answer(200, mark.encode() + body)

    def stream(self, parts: list[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for part in parts[:-1]:
                if part.startswith("until="):
                    wait_for(Path(part.removeprefix("until=")))
                    continue
                self.wfile.write(f"{len(part):x}\r\n{part}\r\n".encode())
                time.sleep(0.1)
            if parts[-1] == "hang":
                time.sleep(5)
        except OSError:
            print("nobody reads any more", flush=True)
        if parts[-1] == "end":
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = parts[-1] != "end"

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/x-stand-in")
        self.send_header("Content-Length", str(len(body)))
        if attributes := self.headers.get("X-Amzn-SageMaker-Custom-Attributes"):
            self.send_header("X-Amzn-SageMaker-Custom-Attributes", f"seen {attributes}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not file.exists():
        if time.monotonic() > deadline:
            sys.exit(f"{file} did not come")
        time.sleep(0.005)


def model_files() -> dict[str, list[object]]:
    root = Path(os.environ["SM_MODEL_DIR"])
    return {
        str(path.relative_to(root)): [path.read_text(), oct(path.stat().st_mode & 0o777)]
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def main() -> None:
    print(f"stand-in {MODE} pid {os.getpid()}", flush=True)
    if MODE == "dead":
        print("cannot load the model: no such layer", file=sys.stderr, flush=True)
        sys.exit(7)
    port = int(os.environ["SAGEMAKER_BIND_TO_PORT"])
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = False

    def stop(*_: object) -> None:
        if MODE != "stubborn":
            STOPPED.set()
            threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    server.serve_forever(poll_interval=0.02)


if __name__ == "__main__":
    main()
