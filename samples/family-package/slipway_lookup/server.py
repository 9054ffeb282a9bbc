"""The program of the image: keeps SageMaker's contract with Python's standard library alone."""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MODEL = Path(os.environ.get("SM_MODEL_DIR", "/opt/ml/model"))
TABLE: dict[str, str] = json.loads((MODEL / "table.json").read_text("utf-8"))
WORKERS = threading.Semaphore(int(os.environ["LOOKUP_WORKERS"]))


class Handler(BaseHTTPRequestHandler):
    """Answers `{"inputs": KEY}` with `{"answer": VALUE}`."""

    def do_GET(self) -> None:
        """Answers /ping: the table was read before the port was opened."""
        self._answer(200 if self.path == "/ping" else 404, {})

    def do_POST(self) -> None:
        """Answers /invocations."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with WORKERS:
            try:
                key = json.loads(body)["inputs"]
                self._answer(200, {"answer": TABLE[key]})
            except (ValueError, KeyError, TypeError) as error:
                self._answer(400, {"error": f"no answer: {error!r}"})

    def _answer(self, status: int, content: dict[str, str]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serves until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    port = int(os.environ.get("SAGEMAKER_BIND_TO_PORT", "8080"))
    ThreadingHTTPServer(("", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
