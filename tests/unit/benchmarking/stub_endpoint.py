"""A stub of an endpoint in AWS, for faults that no real endpoint shows when it is asked to."""

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

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

Answered = tuple[int, Mapping[str, str], bytes]
"""Status, headers and body."""


class Request(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = Callable[[int, Request], Answered | None]
"""Of the number of a request; without an answer the connection is closed."""


def ok(_number: int, _request: Request) -> Answered:
    return 200, {"x-Amzn-Invoked-Production-Variant": "main"}, b'{"generated_tokens": 3}'


@dataclass
class Stub:
    """The endpoint of one test, and the requests that came; several tests share the server."""

    access: Access
    answer: Answer = ok
    count: int = 1
    requests: list[Request] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def respond(self, request: Request) -> Answered | None:
        target = request.headers.get("X-Amz-Target")
        if target is None:
            self.requests.append(request)
            return self.answer(next(self.numbers), request)
        variant: dict[str, Any] = {"VariantName": "main"}
        if target == "SageMaker.DescribeEndpoint":
            variant["CurrentInstanceCount"] = self.count
        else:
            variant["InstanceType"] = "ml.g4dn.xlarge"
        described = {"EndpointConfigName": "config", "ProductionVariants": [variant]}
        return 200, {}, json.dumps(described).encode()


@contextmanager
def stub_server() -> Iterator[Callable[[], Stub]]:
    """Serves stubs; gives what makes the next one, to which all new connections go."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            # A connection that a test left open does not reach the next test's stub.
            self.stub = stubs[-1]

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            answered = self.stub.respond(Request(self.path, self.headers, content))
            if answered is None:
                self.close_connection = True
                return
            status, headers, body = answered
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        # A client whose connection finds no place in the queue tries again after a second.
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    variables = {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_address[1]}",
    }
    # botocore reads its models once for each session, which takes its time.
    access = Access("us-east-1", variables)
    stubs: list[Stub] = []

    def next_stub() -> Stub:
        stubs.append(Stub(access))
        return stubs[-1]

    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield next_stub
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


def make_run(stub: Stub, design: LoadedDesign, component: str | None = None, **changed: Any) -> Run:
    """Returns a run that writes and says nothing, after a self-test that passed."""
    endpoint = Endpoint("ranker", LOCAL, ENDPOINT, component, stub.access)
    given: dict[str, Any] = {"test": passed, "say": lambda _text: None, "write": lambda *_: None}
    return Run(endpoint, design, None, "no tokenizer", **(given | changed))
