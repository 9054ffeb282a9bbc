"""The table of engines: read from releases, of which these stand-ins have the same form."""

import datetime
import hashlib
import http.server
import io
import json
import re
import tarfile
import threading
import zipfile

import pytest

from slipway.facts.lmi.engines import family_architectures, least_capability, serves
from tools.refresh_facts import engines
from tools.refresh_facts.tables import SourceError

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


def test_spans_end_where_a_name_is_missing():
    known = {"1": ["a", "b"], "2": ["b"], "3": ["a", "b"]}
    assert engines.spans(known) == {"a": ["1..1", "3.."], "b": ["1.."]}


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


def test_a_file_that_is_no_release_and_spans_that_end(tmp_path):
    (tmp_path / "vllm-9.tar.gz").write_text("gone")
    with pytest.raises(SourceError, match=r"vllm-9\.tar\.gz is no release"):
        engines.Release(tmp_path / "vllm-9.tar.gz")


class Index(http.server.BaseHTTPRequestHandler):
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
    with http.server.HTTPServer(("127.0.0.1", 0), Index) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


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
