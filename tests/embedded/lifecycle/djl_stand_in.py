"""Stands for AWS's CPU image of DJL Serving: runs the model.py of a model directory, and no more.

The real server runs the same files in tests/containers/lmi/real.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MODEL = Path(os.environ["SM_MODEL_DIR"])


class Input:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def is_empty(self) -> bool:
        return not self._body

    def get_as_json(self) -> Any:
        return json.loads(self._body)


class Output:
    def __init__(self, code: int = 200) -> None:
        self.code = code
        self.properties: dict[str, str] = {}
        self.body = b""

    def add_as_json(self, content: Any) -> Output:
        self.body = json.dumps(content).encode()
        return self

    def add_property(self, key: str, value: str) -> Output:
        self.properties[key] = value
        return self


def load() -> Any:
    package = types.ModuleType("djl_python")
    package.__dict__["Output"] = Output
    sys.modules["djl_python"] = package
    spec = importlib.util.spec_from_file_location("model", MODEL / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Handler(BaseHTTPRequestHandler):
    model: Any

    def do_GET(self) -> None:
        self.answer(200, b"{}", {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        output = self.model.handle(Input(body))
        self.answer(output.code, output.body, output.properties)

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    Handler.model = load()
    # The empty request that DJL Serving begins with.
    assert Handler.model.handle(Input(b"")) is None
    port = int(os.environ["SAGEMAKER_BIND_TO_PORT"])
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
