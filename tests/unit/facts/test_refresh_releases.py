"""What refreshing reads over HTTP: digests of base images, and releases of engines."""

import datetime
import hashlib
import io
import json
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from slipway.facts.lmi.engines import family_architectures, least_capability, serves
from tools.refresh_facts import base_digests, engines
from tools.refresh_facts.tables import SourceError

OLD, NEW = "nvidia/tensorrt:24.09-py3", "nvidia/tensorrt:25.09-py3"
NEURON = "pytorch-inference-neuronx"


def digest(digit: str) -> str:
    return f"sha256:{digit * 64}"


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


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
    with served(Registry) as url:
        yield url


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
        ({}, {"eu-west-1": Ecr("c", without=NEURON)}, f"the registry tells no digest of {NEURON}:"),
        ({}, {"nowhere-1": Ecr("c")}, "AWS publishes no image in nowhere-1"),
    ],
)
def test_doubts_change_nothing(registry, path, edit, clients, message, monkeypatch, capsys):
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


DAY = datetime.date(2026, 1, 2)
AUTO = "transformers/models/auto/modeling_auto.py"
# The registry as the first releases had it, and as the newest have it.
FIRST = {
    "vllm/model_executor/model_loader.py": (
        '_MODEL_REGISTRY = {"GoneForCausalLM": Gone, "LlamaForCausalLM": Llama}'
    )
}
NEWER = {
    "vllm/model_executor/models/registry.py": """
_TEXT = {"LlamaForCausalLM": ("llama", "LlamaForCausalLM"), "NewForCausalLM": ("new", "New")}
_SPECULATIVE_DECODING_MODELS = {"EagleModel": ("eagle", "Eagle")}
_TRANSFORMERS_SUPPORTED_MODELS = {"GivenForCausalLM": ("transformers", "Any")}
_VLLM_MODELS = {**_TEXT, **_SPECULATIVE_DECODING_MODELS, **_TRANSFORMERS_SUPPORTED_MODELS}
""",
    "vllm/model_executor/layers/quantization/__init__.py": """
def get_quantization_config(name):
    method_to_config: dict[str, type] = {
        "awq": AWQ, "fp8": FP8, "ptpc_fp8": PTPC, "ipex": IPEX,
        "compressed-tensors": CompressedTensorsConfig,
    }
""",
    "vllm/model_executor/layers/quantization/all.py": """
class AWQ:
    def get_min_capability(cls) -> int:
        return 75
class FP8:
    def get_min_capability(cls) -> int:
        return 80
class PTPC(FP8): ...
class IPEX:
    def get_min_capability(cls) -> int:
        return -1
class CompressedTensorsConfig:
    def get_min_capability(cls) -> int:
        return 70
class CompressedTensorsW4A8Int:
    def get_min_capability(cls) -> int:
        return 1
class CompressedTensorsW8A8Int8:
    def get_min_capability(cls) -> int:
        return 75
""",
    "vllm/config/model.py": '_SUFFIX_TO_DEFAULTS: list = [("ForCausalLM", ("generate", "none"))]',
    "vllm/tool_parsers/__init__.py": '_TOOL_PARSERS_TO_REGISTER = {"hermes": ("file", "Class")}',
    "vllm/entrypoints/openai/tool_parsers/old.py": """
@ToolParserManager.register_module(["internlm"])
class Old: ...
@ToolParserManager.register_module(name="mistral")
class Other: ...
""",
    "tests/models/registry.py": """
_MODELS = {
    "NewForCausalLM": _Info("acme/new", trust_remote_code=True),
    "LlamaForCausalLM": _Info("acme/llama", trust_remote_code=True),
}
""",
}
WHEEL = {
    AUTO: """
MODEL_MAPPING_NAMES = OrderedDict([("llama", "LlamaModel"), ("xlm-bert", "BertModel")])
MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict(
    [("llama", "LlamaForCausalLM"), ("lone", "LoneForCausalLM"), ("odd", "OddForCausalLM")])
MODEL_FOR_MASKED_LM_MAPPING_NAMES = OrderedDict([("xlm-bert", "BertForMaskedLM")])
MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES = OrderedDict(
    [*list(MODEL_FOR_MASKED_LM_MAPPING_NAMES.items()), ("seer", ("SeerModel", "OtherSeer")),
     ("blind", "BlindModel")])
""",
    "transformers/models/auto/processing_auto.py": """
PROCESSOR_MAPPING_NAMES: dict[str, str] = {}
PROCESSOR_MAPPING_NAMES = OrderedDict([("seer", "SeerProcessor"), ("blind", "BlindProcessor")])
""",
    "transformers/models/seer/processing_seer.py": """
class SeerProcessor:
    def _get_num_multimodal_tokens(self): ...
""",
    "transformers/models/all.py": """
class Base(PreTrainedModel):
    _supports_attention_backend = True
class LlamaForCausalLM(Base): ...
class LoneForCausalLM(Base, Mixin): ...
class BertModel(Base): ...
class OtherSeer(Base): ...
class BlindModel(Base): ...
class OddForCausalLM(PreTrainedModel):
    _supports_attention_backend = False
""",
}


def archive(path, files):
    if path.suffix == ".whl":
        with zipfile.ZipFile(path, "w") as wheel:
            for name, text in files.items():
                wheel.writestr(name, text)
        return path
    with tarfile.open(path, "w:gz") as source:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{path.stem}/{name}")
            member.size = len(text.encode())
            source.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def fetch(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "vllm_versions", lambda: {"0.23.0": "0.1.1", "0.36.0": "0.23.0"})
    monkeypatch.setitem(engines.TABLES, "transformers", {"0.36.0": "5.9.0"})
    contents = {"0.1.1": FIRST, "0.23.0": NEWER, "5.9.0": WHEEL}
    return lambda package, version, suffix: archive(
        tmp_path / f"{package}-{version}{suffix}", contents[version]
    )


def test_a_table_is_made_of_releases(fetch):
    found = engines.table(fetch)
    assert found["vllm"] == {"0.23.0": "0.1.1", "0.36.0": "0.23.0"}
    known = found["architectures"]
    assert known["vllm"] == {
        "GoneForCausalLM": ["0.23.0..0.23.0"],
        "LlamaForCausalLM": ["0.23.0.."],
        "NewForCausalLM": ["0.36.0.."],
    }
    assert known["transformers"] == {
        "BertModel": ["0.36.0.."],
        "GivenForCausalLM": ["0.36.0.."],
        "LoneForCausalLM": ["0.36.0.."],
        # Its processor says how many tokens an image takes; that of BlindModel does not.
        "OtherSeer": ["0.36.0.."],
    }
    assert set(known) == {"vllm", "transformers", "tensorrt-llm", "transformers-neuronx"}
    assert found["families"] == {
        "blind": ["BlindModel"],
        "llama": ["LlamaForCausalLM"],
        "lone": ["LoneForCausalLM"],
        "odd": ["OddForCausalLM"],
        "seer": ["OtherSeer", "SeerModel"],
        "xlm_bert": ["BertModel"],
    }
    assert found["remote_code"] == {"NewForCausalLM": ["0.36.0.."]}
    assert found["suffixes"] == {"ForCausalLM": ["0.36.0.."]}
    assert list(found["tool_parsers"]) == ["hermes", "internlm", "mistral"]
    assert found["quantization"]["vllm"] == {
        "awq": [{"in": "0.36.0..", "least": "sm75"}],
        "compressed_tensors": [{"in": "0.36.0..", "least": "sm75"}],
        "fp8": [{"in": "0.36.0..", "least": "sm80"}],
        "ptpc_fp8": [{"in": "0.36.0..", "least": "sm80"}],
    }


def test_spans_end_where_a_name_is_missing_and_a_file_that_is_no_release_is_told(tmp_path):
    known = {"1": ["a", "b"], "2": ["b"], "3": ["a", "b"]}
    assert engines.spans(known) == {"a": ["1..1", "3.."], "b": ["1.."]}
    (tmp_path / "vllm-9.tar.gz").write_text("gone")
    with pytest.raises(SourceError, match=r"vllm-9\.tar\.gz is no release"):
        engines.Release(tmp_path / "vllm-9.tar.gz")


@pytest.mark.parametrize(
    ("read", "files", "message"),
    [
        (engines.architectures, {"vllm/models.py": ""}, "its registry of models in another way"),
        (lambda release: engines.auto_classes(release, [""]), {AUTO: "MODEL = 1"},
         "its mappings of models in another way"),
    ],
)  # fmt: skip
def test_another_form_is_no_empty_table(tmp_path, read, files, message):
    release = engines.Release(archive(tmp_path / "vllm-9.tar.gz", files))
    with pytest.raises(SourceError, match=rf"vllm-9\.tar\.gz keeps {message}"):
        read(release)


class Index(BaseHTTPRequestHandler):
    """A package index with one release, whose digest it may not keep."""

    digest = hashlib.sha256(b"content").hexdigest()

    def do_GET(self):
        listed = {
            "filename": "vllm-1.tar.gz",
            "url": "../files/1",
            "hashes": {"sha256": self.digest},
        }
        body = b"content" if self.path == "/files/1" else json.dumps({"files": [listed]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing."""


@pytest.fixture
def index():
    with served(Index) as url:
        yield url


def test_a_release_is_downloaded_once(tmp_path, index, monkeypatch):
    found = engines.download(tmp_path / "new", index, "vllm", "1", ".tar.gz")
    assert found.read_bytes() == b"content"
    assert engines.download(tmp_path / "new", "http://nowhere", "vllm", "1", ".tar.gz") == found
    with pytest.raises(SourceError, match=r"has no vllm-2\.tar\.gz"):
        engines.download(tmp_path, index, "vllm", "2", ".tar.gz")
    monkeypatch.setattr(Index, "digest", "0" * 64)
    with pytest.raises(SourceError, match=r"sends another vllm-1\.tar\.gz than it lists"):
        engines.download(tmp_path, index, "vllm", "1", ".tar.gz")


# The committed table


def test_the_committed_table_is_of_the_images_there_are():
    found = json.loads(engines.PATH.read_text("utf-8"))
    assert found["vllm"] == engines.vllm_versions()
    assert found["transformers"] == engines.TABLES["transformers"]
    for name in ("tensorrt-llm", "transformers-neuronx"):
        assert found["architectures"][name] == engines.TABLES["architectures"][name]


def test_what_published_models_are_served_by():
    guide = (engines.DOWNLOADS.parents[1] / "docs" / "guides" / "lmi.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| ([\d.]+) \|$", guide, re.MULTILINE)
    assert len(rows) > 10
    for family, name, first in rows:
        assert name in family_architectures(family)
        served = [at for at in engines.vllm_versions() if serves("vllm", at, name)]
        assert served[0] == first, family
    assert serves("vllm", "0.36.0", "NobodysForCausalLM") is False
    assert serves("transformers-neuronx", "0.27.0", "BertModel") is None
    assert serves("transformers-neuronx", "0.25.0", "LlamaForCausalLM") is None
    assert serves("deepspeed", "0.27.0", "LlamaForCausalLM") is None
    assert least_capability("vllm", "0.35.0", "fp8") == "sm80"
    assert least_capability("vllm", "0.36.0", "fp8") == "sm75"
