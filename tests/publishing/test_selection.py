"""Which files of a repository are taken, by the listings of well-known ones."""

import json
from dataclasses import replace

import pytest

from slipway.config.sections.artifacts import HubWeights, PathWeights, S3Weights
from slipway.errors import UserError
from slipway.publishing.file_set import FileSet
from slipway.publishing.selection import left_out, wanted
from tests.support.projects import messages

_CODE = b'{"auto_map": {"AutoModelForCausalLM": "modeling_qwen.QWenLMHeadModel"}}'
_SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
_INDEX = json.dumps({"weight_map": dict(enumerate(_SHARDS))}).encode()
_SHARDED = {"model.safetensors.index.json": _INDEX, **dict.fromkeys(_SHARDS, b"w")}
_TOKENIZER = dict.fromkeys(("config.json", "tokenizer.json", "tokenizer_config.json"), b"{}")
_MODULES = b'[{"path": ""}, {"path": "1_Pooling"}, {"path": 1}]'
_PIPELINE = b'{"_class_name": "P", "unet": ["diffusers", "U"], "vae": ["diffusers", "V"]}'

REPOSITORIES = {
    "gpt-oss": (
        {**_TOKENIZER, **_SHARDED, "chat_template.jinja": b"t"},
        (".gitattributes", "README.md", "metal/model.bin", "original/config.json",
         "original/dtypes.json", "original/model--00001-of-00007.safetensors"),
    ),
    "llama-3": (
        {**_TOKENIZER, **_SHARDED},
        ("LICENSE", "original/consolidated.00.pth", "original/params.json",
         "original/tokenizer.model"),
    ),
    "mistral": (
        {**_TOKENIZER, **_SHARDED, "params.json": b"{}", "tekken.json": b"{}"},
        ("consolidated.safetensors", "pytorch_model.bin.index.json"),
    ),
    "qwen": (
        {**_SHARDED, "config.json": _CODE, "qwen.tiktoken": b"t", "modeling_qwen.py": b"p",
         "tokenization_qwen.py": b"p"},
        ("assets/logo.jpg", "examples/react.py"),
    ),
    "code that only the tokenizer has": (
        {"config.json": b"{}", "tokenizer_config.json": _CODE, "tokenization_xgen.py": b"p",
         "pytorch_model.bin": b"w"},
        (),
    ),
    "code that nothing names": ({**_TOKENIZER, **_SHARDED}, ("convert.py",)),
    "sentence-transformers": (
        {**_TOKENIZER, "modules.json": _MODULES, "1_Pooling/config.json": b"{}",
         "model.safetensors": b"w"},
        ("onnx/config.json", "onnx/model.onnx", "pytorch_model.bin", "train_script.py"),
    ),
    "modules that are no list": ({"modules.json": b"1", "model.safetensors": b"w"}, ()),
    "diffusers": (
        {"model_index.json": _PIPELINE, "unet/config.json": b"{}",
         "unet/diffusion_pytorch_model.safetensors": b"w",
         "vae/diffusion_pytorch_model.fp16.safetensors": b"w"},
        ("unet/diffusion_pytorch_model.bin", "unet/diffusion_pytorch_model.fp16.safetensors",
         "v1-5-pruned.ckpt", "other/config.json"),
    ),
    "marian": (
        {**_TOKENIZER, "pytorch_model.bin": b"w", "source.spm": b"s", "target.spm": b"s"},
        ("rust_model.ot", "tf_model.h5"),
    ),
    "an adapter beside pickled weights": (
        {**_TOKENIZER, "pytorch_model.bin": b"w"},
        ("adapter_config.json", "adapter_model.safetensors", "optimizer.bin", "training_args.bin"),
    ),
    "an adapter alone": (
        {"adapter_config.json": b"{}", "adapter_model.safetensors": b"w"}, ("training_args.bin",),
    ),
    "weights of another name": (
        {**_TOKENIZER, "gptq_model-4bit-128g.safetensors": b"w"}, ("gptq/model.safetensors",),
    ),
}  # fmt: skip


def files_of(contents: dict[str, bytes]) -> FileSet:
    sizes = {path: len(content) for path, content in sorted(contents.items())}
    return FileSet("a/b", sizes, lambda path, start, length: contents[path][start:][:length])


def weights(**changes: object) -> HubWeights:
    return HubWeights.model_validate(
        {"source": "hub", "repository": "a/b", "revision": "0" * 40, **changes}
    )


@pytest.mark.parametrize("name", REPOSITORIES)
def test_what_a_loader_reads_is_taken_and_nothing_else(name):
    taken, left = REPOSITORIES[name]
    listed = files_of(taken | dict.fromkeys(left, b"{}"))
    assert wanted(listed, weights()).sizes_bytes.keys() == taken.keys()


def test_patterns_decide_alone():
    listed = files_of(REPOSITORIES["llama-3"][0] | {"original/params.json": b"{}"})
    assert [*wanted(listed, weights(allow_patterns=["original/*"])).sizes_bytes] == [
        "original/params.json"
    ]


def test_files_that_are_left_out_are_named():
    taken = {"model.safetensors": b"w", "1_Pooling/config.json": b"{}"}
    left = ("1_Pooling/a.md", "docs/a", "docs/b", *(f"z{number:02}" for number in range(9)))
    assert left_out(files_of(taken | dict.fromkeys(left, b"")).only(taken)) == (
        "Left out of a/b: 1_Pooling/a.md, docs/, z00, z01, z02, z03, z04, z05, z06, z07, ... "
        "(12 of 14 files)."
    )
    assert left_out(files_of(taken)) is None


def test_the_same_weights_in_another_format_are_named_with_their_size():
    sizes = {
        "a.md": 7,
        "metal/model.bin": 100_000_000,
        "model.safetensors": 65_000_000_000,
        "original/a.safetensors": 40_000_000_000,
        "original/b.safetensors": 25_200_000_000,
    }
    files = replace(files_of(dict.fromkeys(sizes, b"")), sizes_bytes=sizes)
    said = left_out(wanted(files, weights()))
    assert said == (
        "Left out of a/b: original/, metal/, a.md (4 of 5 files; 65.3 GB are the same weights in "
        "another format)."
    )


AGAIN = (
    "consolidated.00.pth", "consolidated.safetensors", "flax_model.msgpack", "model.onnx",
    "metal/model.bin", "model.Q4_K_M.gguf", "onnx/config.json", "openvino/openvino_model.bin",
    "openvino_model.bin", "openvino_model.xml", "original/params.json", "original/tokenizer.model",
    "pytorch_model-00001-of-00002.bin", "pytorch_model.bin", "pytorch_model.bin.index.json",
    "rust_model.ot", "tf_model.h5", "2_Dense/pytorch_model.bin",
)  # fmt: skip
KEPT = {
    ".gitattributes": b"", "README.md": b"", "adapters/a/adapter_model.bin": b"w",
    "draft/model.safetensors": b"w", "input_scales.safetensors": b"s", "params.json": b"{}",
    "training_args.bin": b"t", "2_Dense/model.safetensors": b"w", "code/inference.py": b"p",
}  # fmt: skip


@pytest.mark.parametrize("source", [PathWeights, S3Weights])
def test_of_a_folder_everything_is_taken_but_other_formats(source):
    folder = source.model_construct(allow_patterns=None)
    files = _TOKENIZER | _SHARDED | KEPT
    assert wanted(files_of(files), folder).sizes_bytes.keys() == files.keys()
    everything = files_of(files | dict.fromkeys(AGAIN, b"w"))
    assert wanted(everything, folder).sizes_bytes.keys() == files.keys()
    # On request, and where the user's own code may read any.
    asked = source.model_construct(allow_patterns=("*",))
    assert wanted(everything, asked).sizes_bytes == everything.sizes_bytes
    assert wanted(everything, folder, loads_any=True).sizes_bytes == everything.sizes_bytes


def test_nothing_is_left_out_beside_weights_that_are_not_whole():
    files = dict.fromkeys(AGAIN, b"w") | _SHARDED
    del files[_SHARDS[0]], files["2_Dense/pytorch_model.bin"]
    folder = PathWeights.model_construct(allow_patterns=None)
    assert wanted(files_of(files), folder).sizes_bytes.keys() == files.keys()


def test_a_repository_of_gguf_alone_is_named():
    with pytest.raises(UserError) as caught:
        wanted(files_of({"README.md": b"", "model.Q4.gguf": b"w"}), weights())
    assert messages(caught.value) == ["a/b has its weights as GGUF alone (model.Q4.gguf)"]
