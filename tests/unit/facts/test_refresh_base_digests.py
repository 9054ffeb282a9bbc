"""The digests of base images: a registry on loopback, and what ECR answers."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from tools.refresh_facts import base_digests

OLD, NEW = "nvidia/tensorrt:24.09-py3", "nvidia/tensorrt:25.09-py3"
NEURON = "pytorch-inference-neuronx"


def digest(digit: str) -> str:
    return f"sha256:{digit * 64}"


class Registry(BaseHTTPRequestHandler):
    """One that wants a token from anybody, as NVIDIA's does."""

    digests: ClassVar[dict[str, str]] = {}

    def do_HEAD(self) -> None:
        if self.headers.get("Authorization") != "Bearer anybody":
            self.send_response(401)
            address = f"http://127.0.0.1:{self.server.server_address[1]}/token"
            scope = f"repository:{self.path.split('/manifests/')[0].removeprefix('/v2/')}:pull"
            said = f'Bearer realm="{address}",service="registry",scope="{scope}"'
            self.send_header("WWW-Authenticate", said)
        else:
            name = self.path.removeprefix("/v2/").replace("/manifests/", ":")
            found = self.digests.get(name)
            self.send_response(200 if found else 404)
            if found:
                self.send_header("Docker-Content-Digest", found)
        self.end_headers()

    def do_GET(self) -> None:
        assert urlsplit(self.path).path == "/token"
        assert "scope=repository%3Anvidia%2Ftensorrt%3Apull" in self.path
        body = b'{"token": "anybody"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Writes nothing."""


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(Registry, "digests", {OLD: digest("a"), NEW: digest("b")})
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "base_digests.json"
    found.write_text('{"as_of": "2026-01-02", "sources": [], "digests": {"kept:1": "sha256:0"}}')
    return found


class Ecr:
    """Answers as ECR does; `digit` is in every digest."""

    def __init__(self, digit: str, without: str = "") -> None:
        self._digit, self._without = digit, without

    def batch_get_image(self, **asked: Any) -> dict[str, Any]:
        (wanted,) = asked["imageIds"]
        if asked["repositoryName"] == self._without:
            return {"images": [], "failures": [{"failureCode": "ImageNotFound"}]}
        return {"images": [{"imageId": {**wanted, "imageDigest": digest(self._digit)}}]}


def test_nvidias_registry_is_asked_and_the_rest_is_kept(registry, path, capsys):
    assert base_digests.main([], path=path, registry=registry) == 0
    assert json.loads(path.read_text())["digests"] == {
        "kept:1": "sha256:0", OLD: digest("a"), NEW: digest("b"),
    }  # fmt: skip
    before = path.read_text()
    assert base_digests.main([], path=path, registry=registry) == 0
    assert path.read_text() == before
    assert capsys.readouterr().out.splitlines() == [
        "base_digests.json: written anew; review the diff.",
        "base_digests.json: nothing changed.",
    ]


def test_awss_registries_are_asked_where_they_are_named(registry, path):
    regions = ["--region", "eu-west-1", "--region", "us-east-1"]
    assert base_digests.main(regions, path=path, registry=registry, connect=lambda _: Ecr("c")) == 0
    digests = json.loads(path.read_text())["digests"]
    assert {name.partition(":")[0] for name in digests} == {
        "djl-inference", "kept", "nvidia/tensorrt", "pytorch-inference-neuron", NEURON,
        "sagemaker-tritonserver",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("edit", "clients", "message"),
    [
        ({NEW: digest("B")}, {}, f"the registry tells no digest of {NEW}: {digest('B')}"),
        (
            {},
            {"eu-west-1": Ecr("c"), "us-east-1": Ecr("d")},
            "two regions have different images of pytorch-inference-neuron:",
        ),
        (
            {},
            {"eu-west-1": Ecr("c", without=NEURON)},
            f"the registry tells no digest of {NEURON}:",
        ),
        ({}, {"nowhere-1": Ecr("c")}, "AWS publishes no image in nowhere-1"),
    ],
)
def test_a_doubtful_answer_changes_nothing(
    registry, path, edit, clients, message, monkeypatch, capsys
):
    monkeypatch.setattr(Registry, "digests", {**Registry.digests, **edit})
    before = path.read_text()
    regions = [word for region in clients for word in ("--region", region)]
    assert base_digests.main(regions, path=path, registry=registry, connect=clients.__getitem__)
    assert path.read_text() == before
    assert f"base_digests.json is as it was: {message}" in capsys.readouterr().err


def test_a_registry_without_the_image_changes_nothing(registry, path, monkeypatch, capsys):
    monkeypatch.setattr(Registry, "digests", {OLD: digest("a")})
    before = path.read_text()
    assert base_digests.main([], path=path, registry=registry) == 1
    assert path.read_text() == before
    assert "404 Not Found" in capsys.readouterr().err
