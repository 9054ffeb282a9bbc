"""A stub of an endpoint in AWS, for faults that no real endpoint shows when it is asked to."""

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from slipway.access import Access
from slipway.benchmarking.design import LoadedDesign, load_design
from slipway.benchmarking.endpoint import Endpoint
from slipway.benchmarking.run import Run
from slipway.benchmarking.self_test import Level
from slipway.config.environments import Environment

LOCAL = Environment.model_validate(
    {"name": "production", "account": "123456789012", "region": "us-east-1", "project": ""}
)
ENDPOINT = "ranker-production"

Answer = Callable[[int, Mapping[str, str]], tuple[int, Mapping[str, str], bytes]]
"""Of the number of a request and its headers: status, headers and body."""


@dataclass
class Stub:
    """A running stub.

    Args:
        url: its address.
        instance_type: of the endpoint's only variant.
        count: its instances.
        paths: of the requests that came.
    """

    url: str
    instance_type: str = "ml.g4dn.xlarge"
    count: int = 1
    paths: list[str] = field(default_factory=list)

    @property
    def access(self) -> Access:
        variables = {
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_ENDPOINT_URL": self.url,
        }
        return Access("us-east-1", variables)

    def described(self, target: str) -> dict[str, Any]:
        variant: dict[str, Any] = {"VariantName": "main"}
        if target == "SageMaker.DescribeEndpoint":
            variant["CurrentInstanceCount"] = self.count
            return {"EndpointConfigName": "config", "ProductionVariants": [variant]}
        variant["InstanceType"] = self.instance_type
        return {"ProductionVariants": [variant]}


@contextmanager
def stub_endpoint(answer: Answer) -> Iterator[Stub]:
    """Serves an endpoint whose requests a function answers."""
    numbers = itertools.count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            target = self.headers.get("X-Amz-Target")
            if target:
                status, headers, body = 200, {}, json.dumps(stub.described(target)).encode()
            else:
                stub.paths.append(self.path)
                status, headers, body = answer(next(numbers), self.headers)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub = Stub(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


DESIGN: Mapping[str, Any] = {
    "description": "A test",
    "factors": {"concurrency": [2]},
    "request": {"body": {"inputs": "{inputs}"}},
    "prompts": {"file": "prompts.txt"},
    "trials": 1,
    "seconds": 0.05,
    "warm_up_seconds": 0,
}


def written_design(folder: Path, **changed: Any) -> LoadedDesign:
    """Writes a design with its prompts, in JSON, which is YAML; None leaves a field out."""
    (folder / "prompts.txt").write_text("one\ntwo\n")
    path = folder / "mine.yaml"
    content = {name: value for name, value in {**DESIGN, **changed}.items() if value is not None}
    path.write_text(json.dumps(content))
    return load_design(path, folder)


def passed(concurrency: int | None, rate: float | None, _body: bytes) -> Level:
    """A self-test that every level passes."""
    return Level(concurrency, rate, 1.0, 0.0, None)


def make_run(stub: Stub, design: LoadedDesign, **changed: Any) -> Run:
    """Returns a prepared run; what it writes is kept in `run.written`."""
    endpoint = Endpoint("ranker", LOCAL, ENDPOINT, None, stub.access)
    given: dict[str, Any] = {"test": passed, "say": lambda _text: None, "write": lambda *_: None}
    run = Run(endpoint, design, None, "no tokenizer", design.path.parent, **(given | changed))
    run.prepare()
    return run


def ok(_number: int, _headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
    return 200, {"x-Amzn-Invoked-Production-Variant": "main"}, b'{"generated_tokens": 3}'
