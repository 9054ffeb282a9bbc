"""What `slipway init` reads of a checkpoint's files, written here as safetensors writes them."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from slipway.config.checkpoint import CheckpointFacts, read_checkpoint
from slipway.errors import UserError
from tests.support.pages import ROOT
from tests.support.projects import refusal


def write_tensors(path: Path, tensors: dict[str, tuple[str, list[int]]]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    for name, (dtype, shape) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def checkpoint(folder: Path, config: dict[str, Any]) -> Path:
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


def test_the_samples_say_what_their_configs_would():
    gpt2 = read_checkpoint(ROOT / "samples" / "gpt2-autocomplete" / "model", "sample")
    assert gpt2 == CheckpointFacts(
        "gpt2",
        2_222_560,
        {
            "layers": 5, "hidden_size": 160, "attention_heads": 5, "positions": 128,
            "vocabulary_size": 4096, "tied_embeddings": True, "architecture": "GPT2LMHeadModel",
        },
        positions=128,
        dtype="fp32",
        architectures=("GPT2LMHeadModel",),
        task="generation",
    )  # fmt: skip
    # Its weights are in the ONNX graph.
    bert = read_checkpoint(ROOT / "samples" / "bert-qa" / "model", "sample")
    assert bert == CheckpointFacts(
        "bert",
        None,
        {
            "layers": 3, "hidden_size": 128, "attention_heads": 4, "positions": 128,
            "vocabulary_size": 536, "tied_embeddings": True, "cached_layers": 0,
            "architecture": "BertForQuestionAnswering",
        },
        positions=128,
        dtype="fp32",
        architectures=("BertForQuestionAnswering",),
        task="classification",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("config", "family", "shape"),
    [
        (
            {"model_type": "distilbert", "n_layers": 6, "dim": 768, "n_heads": 12},
            "distilbert",
            {"layers": 6, "hidden_size": 768, "attention_heads": 12},
        ),
        (
            {"model_type": "xlm-roberta", "num_hidden_layers": 12, "hidden_size": 768,
             "num_attention_heads": 12},
            "xlm_roberta",
            {"layers": 12, "hidden_size": 768, "attention_heads": 12},
        ),
        (
            {"model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 3584,
             "num_attention_heads": 28, "num_key_value_heads": 4, "head_dim": 128},
            "qwen2",
            {"layers": 28, "hidden_size": 3584, "attention_heads": 28, "key_value_heads": 4},
        ),
        (
            {"model_type": "t5", "num_layers": 24, "num_decoder_layers": None, "d_model": 4096,
             "num_heads": 64, "d_kv": 128},
            "t5",
            {"layers": 24, "hidden_size": 4096, "attention_heads": 64, "head_size": 128},
        ),
        ({"model_type": "mamba", "num_hidden_layers": 4}, "mamba",
         {"layers": 4, "hidden_size": 768}),
        ({"num_hidden_layers": 4}, None, {"layers": 4}),
    ],
)  # fmt: skip
def test_each_family_has_names_of_its_own(tmp_path, config, family, shape):
    facts = read_checkpoint(checkpoint(tmp_path, config), "c")
    assert facts.family == family
    said = ("layers", "hidden_size", "attention_heads", "key_value_heads", "head_size")
    told = {name: facts.shape[name] for name in said if name in facts.shape}
    assert told == shape


def test_weights_in_several_files_are_counted_and_buffers_are_not(tmp_path):
    checkpoint(tmp_path, {"model_type": "gpt2"})
    write_tensors(
        tmp_path / "model-00001-of-00002.safetensors",
        {"wte.weight": ("F16", [50, 8]), "h.0.attn.bias": ("F32", [1, 1, 1024, 1024])},
    )
    write_tensors(
        tmp_path / "model-00002-of-00002.safetensors",
        {"h.0.attn.c_attn.bias": ("F32", [24]), "position_ids": ("I64", [1, 512])},
    )
    parts = {
        "wte.weight": "model-00001-of-00002.safetensors",
        "h.0.attn.c_attn.bias": "model-00002-of-00002.safetensors",
    }
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": parts}), "utf-8")
    assert read_checkpoint(tmp_path, "c").parameters == 50 * 8 + 24


def test_what_nobody_tells_is_named_and_a_folder_without_a_config_says_nothing(tmp_path):
    assert read_checkpoint(tmp_path, "c") == CheckpointFacts()
    facts = read_checkpoint(checkpoint(tmp_path, {"num_hidden_layers": 4}), "c")
    assert facts.unknown_fields == ("hidden_size", "attention_heads")
    # A state space needs no heads.
    mamba = read_checkpoint(checkpoint(tmp_path, {"model_type": "mamba"}), "c")
    assert mamba.unknown_fields == ()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "model.safetensors",
            b"\xff" * 9,
            "c/model.safetensors is not a readable safetensors file: the header is too long",
        ),
        ("model.safetensors", b"", "c/model.safetensors is not a readable safetensors file: "),
        (
            "model.safetensors",
            struct.pack("<Q", 2) + b"[]",
            "c/model.safetensors is not a readable safetensors file: ",
        ),
        (
            "model.safetensors",
            struct.pack("<Q", 34) + b'{"a": {"shape": [1], "dtype": []}}',
            "c/model.safetensors is not a readable safetensors file: a dtype is no text",
        ),
        ("config.json", b"{", "c/config.json is not a readable JSON document: "),
        ("config.json", b"[]", "c/config.json is not a readable JSON document: it is no object"),
        (
            "config.json",
            b"[" * 100_000,
            "c/config.json is not a readable JSON document: it is nested too deeply",
        ),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, content, message):
    checkpoint(tmp_path, {"model_type": "gpt2"})
    (tmp_path / name).write_bytes(content)
    caught = refusal(read_checkpoint, tmp_path, "c")
    assert message in str(caught)
    assert "Copy the checkpoint again." in str(caught)
    assert "LFS" not in str(caught)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_pointer_of_git_lfs_is_called_one(tmp_path, name):
    checkpoint(tmp_path, {"model_type": "gpt2"})
    (tmp_path / name).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(UserError, match=f"c/{name} is a pointer of Git LFS(.|\n)*`git lfs pull`"):
        read_checkpoint(tmp_path, "c")


def test_a_shard_that_is_missing_is_not_called_unreadable(tmp_path):
    checkpoint(tmp_path, {"model_type": "gpt2"})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "model-00001-of-00001.safetensors"}}', "utf-8")
    (problem,) = refusal(read_checkpoint, tmp_path, "c").problems
    assert (problem.message, problem.remedy) == (
        "c/model-00001-of-00001.safetensors is missing, and the index of weights names it",
        "Copy the checkpoint again.",
    )


@pytest.mark.parametrize(
    ("quantization", "tensors", "parameters"),
    [
        (
            {"quant_method": "gptq", "bits": 8},
            {"q.qweight": ("I32", [1024, 4096]), "q.g_idx": ("I32", [4096]),
             "q.qzeros": ("I32", [32, 1024]), "q.scales": ("F16", [32, 4096])},
            4096 * 4096,
        ),
        (
            {"quant_method": "compressed-tensors",
             "config_groups": {"group_0": {"weights": {"num_bits": 4}}}},
            {"q.weight_packed": ("I32", [4096, 512]), "q.weight_scale": ("F16", [4096, 32]),
             "q.weight_shape": ("I32", [2])},
            4096 * 4096,
        ),
    ],
)  # fmt: skip
def test_packed_weights_count_as_weights(tmp_path, quantization, tensors, parameters):
    config = {"model_type": "llama", "quantization_config": quantization,
              "torch_dtype": "bfloat16", "max_position_embeddings": 4096}  # fmt: skip
    write_tensors(checkpoint(tmp_path, config) / "model.safetensors", tensors)
    facts = read_checkpoint(tmp_path, "mine")
    assert facts.parameters == parameters
    assert facts.quantization == quantization["quant_method"].replace("-", "_")
    assert (facts.dtype, facts.positions) == ("bf16", 4096)


def test_a_network_of_images_and_texts_has_its_decoders_facts(tmp_path):
    text = {
        "model_type": "qwen2", "hidden_size": 4096, "num_attention_heads": 32,
        "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "fp8"},
    }  # fmt: skip
    config = {"model_type": "llava_like", "architectures": ["LlavaForConditionalGeneration"],
              "text_config": text, "vision_config": {"torch_dtype": "float32"}}  # fmt: skip
    facts = read_checkpoint(checkpoint(tmp_path, config), "mine")
    assert (facts.family, facts.dtype, facts.quantization) == ("llava_like", "bf16", "fp8")
    assert (facts.shape["hidden_size"], facts.shape["quantization"]) == (4096, "fp8")
    assert facts.task == "vision"


def test_nvfp4_has_two_weights_in_a_byte_and_names_itself_in_a_file_of_its_own(tmp_path):
    checkpoint(tmp_path, {"model_type": "llama", "torch_dtype": "bfloat16"})
    modelopt = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(modelopt), "utf-8")
    tensors: dict[str, tuple[str, list[int]]] = {
        "q.weight": ("U8", [4096, 2048]),
        "q.weight_scale": ("F8_E4M3", [4096, 256]),
        "q.weight_scale_2": ("F32", []),
        "q.input_scale": ("F32", []),
        "k.k_scale": ("F32", []),
        "lm_head.weight": ("BF16", [1000, 4096]),
    }
    write_tensors(tmp_path / "model.safetensors", tensors)
    facts = read_checkpoint(tmp_path, "mine")
    assert facts.parameters == 4096 * 4096 + 1000 * 4096
    assert facts.quantization == facts.shape["quantization"] == "nvfp4"
    assert facts.shape["tied_embeddings"] is False


@pytest.mark.parametrize(
    ("given", "method"),
    [
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}, "fp8"),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, "compressed_tensors"),
        ({"compression_config": {"quant_method": "compressed-tensors"}}, "compressed_tensors"),
        ({"quantization_config": {"quant_method": "intel/auto-round"}}, "intel_auto_round"),
        ({"quantization_config": {}}, None),
        ({"quantization_config": "fp8"}, None),
    ],
)
def test_methods_are_named_as_configs_name_them(tmp_path, given, method):
    facts = read_checkpoint(checkpoint(tmp_path, {"model_type": "llama"} | given), "mine")
    assert facts.quantization == facts.shape.get("quantization") == method


def test_the_precision_of_the_plain_weights_is_taken_where_config_json_names_none(tmp_path):
    config = {"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}}
    tensors: dict[str, tuple[str, list[int]]] = {
        "experts.up_proj_blocks": ("U8", [32, 5760, 90, 16]),
        "embed.weight": ("BF16", [1000, 64]),
        "router.bias": ("F32", [32]),
    }
    write_tensors(checkpoint(tmp_path, config) / "model.safetensors", tensors)
    assert read_checkpoint(tmp_path, "mine").dtype == "bf16"
    checkpoint(tmp_path, config | {"dtype": "float8_e4m3fn"})
    assert read_checkpoint(tmp_path, "mine").dtype == "bf16"


@pytest.mark.parametrize(
    ("config", "files", "task"),
    [
        ({"architectures": ["Qwen3ForCausalLM"]}, {"chat_template.jinja": ""}, "chat"),
        ({"architectures": ["Qwen3ForCausalLM"]},
         {"tokenizer_config.json": '{"chat_template": "x"}'}, "chat"),
        ({"architectures": ["Qwen3ForCausalLM"]}, {"tokenizer_config.json": "{}"}, "generation"),
        ({"architectures": ["Qwen3ForCausalLM"]}, {"modules.json": "[]"}, "embedding"),
        ({"architectures": ["MistralModel"]}, {}, "embedding"),
        # Its own code has a class for texts.
        ({"architectures": ["ChatGLMModel"],
          "auto_map": {"AutoModelForCausalLM": "a.ChatGLMForConditionalGeneration"}}, {},
         "generation"),
        ({"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}}, {},
         "reranking"),
        ({"architectures": ["BertForSequenceClassification"]}, {}, "classification"),
        ({"architectures": ["Gemma3ForConditionalGeneration"], "vision_config": {}},
         {"chat_template.json": "{}"}, "vision"),
        ({}, {}, None),
    ],
)  # fmt: skip
def test_the_task_follows_from_the_class_and_the_files(tmp_path, config, files, task):
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    assert read_checkpoint(checkpoint(tmp_path, config), "mine").task == task
