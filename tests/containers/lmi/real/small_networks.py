"""Small random networks of the architectures that the ready configs name, in vLLM itself.

    python -m tests.containers.lmi.real.small_networks write DIRECTORY
    python -m tests.containers.lmi.real.small_networks serve DIRECTORY

A program for the interpreter of `make vllm`. `write` makes one checkpoint for each row of
`NETWORKS` below DIRECTORY, and answers.json with what Transformers answers. `serve` has vLLM load
each one and answer, and writes served.json.
"""

import json
import os
import sys
from math import prod
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[4]
PUBLISHED = json.loads((ROOT / "tests/support/published_models.json").read_text("utf-8"))["models"]
TOKENIZER = ROOT / "samples" / "gpt2-autocomplete" / "model" / "tokenizer.json"
END_OF_TEXT, PROMPT, PASSAGE = "<|endoftext|>", "The name of the bucket", "Amazon S3 bucket"
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
# Tokens that the networks' own processors and parsers look up.
IMAGE, VIDEO, START, END = "<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"
SPECIAL = [IMAGE, VIDEO, START, END, "<|end|>"]
VOCABULARY = 4096 + len(SPECIAL)
IMAGE_ID, VIDEO_ID, START_ID, END_ID = range(4096, 4100)
NEW_TOKENS = 8
LONGEST = 512
# vLLM takes that much for keys and values.
CACHE_GIB = 1

_TEXT = {
    "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 64, "intermediate_size": 96, "max_position_embeddings": LONGEST,
    "max_window_layers": 4, "vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 0,
    "pad_token_id": 0, "initializer_range": 0.2,
}  # fmt: skip
_VISION = {
    "hidden_size": 32, "num_attention_heads": 2, "num_heads": 2, "intermediate_size": 64,
    "num_hidden_layers": 2, "depth": 2,
}  # fmt: skip
# By the name of the ready config: the published config.json, and what is smaller in ours. Weights
# in fp8 and mxfp4 need a GPU: ours are plain ones.
NETWORKS = {
    "qwen3-8b": ("Qwen/Qwen3-8B", _TEXT),
    "qwen3-30b-a3b-fp8": (
        "Qwen/Qwen3-30B-A3B-FP8",
        {
            **_TEXT, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
            "quantization_config": None,
        },
    ),
    "gpt-oss-20b": (
        "openai/gpt-oss-20b",
        {
            **_TEXT, "num_local_experts": 4, "num_experts_per_tok": 2, "experts_per_token": 2,
            "intermediate_size": 64, "sliding_window": 128, "quantization_config": None,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "beta_fast": 32.0,
                             "beta_slow": 1.0, "original_max_position_embeddings": 256,
                             "truncate": False},
        },
    ),
    "gemma-3-4b": (
        "google/gemma-3-27b-it",
        {
            "text_config": {
                **_TEXT, "num_hidden_layers": 6, "query_pre_attn_scalar": 64, "sliding_window": 128,
            },
            "vision_config": {**_VISION, "image_size": 56},
            "mm_tokens_per_image": 4, "eos_token_id": [0], "boi_token_index": START_ID,
            "eoi_token_index": END_ID, "image_token_index": IMAGE_ID,
        },
    ),
    "qwen3-vl-8b": (
        "Qwen/Qwen3-VL-8B-Instruct",
        {
            "text_config": {
                **_TEXT, "rope_scaling": {"rope_type": "default", "mrope_section": [12, 10, 10],
                                          "mrope_interleaved": True},
            },
            "vision_config": {**_VISION, "out_hidden_size": 128, "num_position_embeddings": 64,
                              "deepstack_visual_indexes": [0, 1]},
            "image_token_id": IMAGE_ID, "video_token_id": VIDEO_ID,
            "vision_start_token_id": START_ID, "vision_end_token_id": END_ID,
        },
    ),
    "qwen3-embedding": ("Qwen/Qwen3-Embedding-0.6B", _TEXT),
    "bge-reranker": (
        "BAAI/bge-reranker-v2-m3",
        {
            **_TEXT, "num_key_value_heads": None, "head_dim": None, "pad_token_id": 1,
            "max_position_embeddings": LONGEST + 2,
        },
    ),
}  # fmt: skip
TEXTS_ONLY = {"gemma-3-4b": ["image"], "qwen3-vl-8b": ["image", "video"]}
# Every CPU has kernels for fp32. Those for gpt-oss' sinks of attention are for bf16 alone.
IN_BF16 = {"gpt-oss-20b"}
POOLING = {"qwen3-embedding", "bge-reranker"}
# Networks with a state of each request: vLLM has no kernels for them on a CPU, but says its size.
HYBRIDS = ["Qwen/Qwen3.5-27B", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"]


def shrunk(config, changes):
    merged = dict(config)
    for name, value in changes.items():
        inner = isinstance(value, dict) and name.endswith("_config")
        merged[name] = shrunk(config.get(name, {}), value) if inner else value
    left_out = {"torch_dtype", "dtype", "transformers_version"}
    return {
        name: value for name, value in merged.items() if value is not None and name not in left_out
    }


def write(directory):
    import torch
    import transformers

    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(TOKENIZER),
        eos_token=END_OF_TEXT,
        pad_token=END_OF_TEXT,
        model_input_names=["input_ids", "attention_mask"],
    )
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
    assert len(tokenizer) == VOCABULARY
    assert tokenizer.convert_tokens_to_ids(SPECIAL[:4]) == [IMAGE_ID, VIDEO_ID, START_ID, END_ID]
    tokenizer.chat_template = TEMPLATE
    answers = {}
    for name, (published, changes) in NETWORKS.items():
        values = shrunk(PUBLISHED[published]["config"], changes)
        config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
        torch.manual_seed(8)
        network = getattr(transformers, values["architectures"][0])._from_config(
            config, dtype=torch.bfloat16
        )
        network.save_pretrained(directory / name)
        tokenizer.save_pretrained(directory / name)
        computing = network if name in IN_BF16 else network.float()
        answers[name] = answer(name, computing.eval(), tokenizer)
    (directory / "answers.json").write_text(json.dumps(answers), "utf-8")


def answer(name, network, tokenizer):
    """What Transformers says: the new tokens, a vector, or a score."""
    import torch

    with torch.no_grad():
        if name == "bge-reranker":
            logits = network(**tokenizer(PROMPT, PASSAGE, return_tensors="pt")).logits
            return [logits.sigmoid().item()]
        tokens = tokenizer(PROMPT, return_tensors="pt")
        if name == "qwen3-embedding":
            last = network.model(**tokens).last_hidden_state[0, -1]
            return list((last / last.norm()).tolist())
        told = network.generate(
            **tokens, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False
        )
    return list(told[0, tokens["input_ids"].shape[1] :].tolist())


def serve(directory):
    os.environ |= {
        # One process: a second one would import vLLM again, for each network.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": str(CACHE_GIB),
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "TORCHDYNAMO_DISABLE": "1",
        "HF_HUB_OFFLINE": "1",
    }
    from vllm.distributed import cleanup_dist_env_and_memory

    served = {}
    for name, (published, _) in NETWORKS.items():
        take_class(PUBLISHED[published]["config"]["architectures"][0])
        served[name] = answered(name, directory / name)
        cleanup_dist_env_and_memory()
    served["states"] = {name: list(states(PUBLISHED[name]["config"])) for name in HYBRIDS}
    (directory / "served.json").write_text(json.dumps(served), "utf-8")


def take_class(architecture):
    """Has vLLM's registry look at its own class here; it would start a process of its own."""
    from vllm.model_executor.models.registry import ModelRegistry

    network = ModelRegistry.models[architecture].load_model_cls()
    ModelRegistry.register_model(architecture, network)
    return network


def answered(name, checkpoint):
    from vllm import LLM, SamplingParams

    engine = LLM(
        str(checkpoint),
        dtype="bfloat16" if name in IN_BF16 else "float32",
        max_model_len=LONGEST,
        max_num_seqs=4,
        enforce_eager=True,
        runner="pooling" if name in POOLING else "generate",
        limit_mm_per_prompt=dict.fromkeys(TEXTS_ONLY.get(name, ()), 0),
    )
    if name == "bge-reranker":
        told = [engine.score(PROMPT, PASSAGE)[0].outputs.score]
    elif name == "qwen3-embedding":
        told = engine.embed(PROMPT)[0].outputs.embedding
    else:
        greedy = SamplingParams(temperature=0, max_tokens=NEW_TOKENS, ignore_eos=True)
        messages = [{"role": "user", "content": PROMPT}]
        chat = engine.chat(messages, greedy, chat_template_content_format="string")
        told = list(chat[0].outputs[0].token_ids)
    core = engine.llm_engine.engine_core.engine_core
    (specifications,) = engine.collective_rpc("get_kv_cache_spec")
    return {
        "answer": told,
        "layers": [
            {
                "token_bytes": each.page_size_bytes / each.block_size,
                "window": getattr(each, "sliding_window", None),
            }
            for each in specifications.values()
        ],
        # Of all layers together, where each keeps every token.
        "tokens": core.scheduler.kv_cache_config.num_blocks
        * max((each.block_size for each in specifications.values()), default=0),
    }


def states(config):
    """Yields the bytes of each part of what vLLM keeps of a request in one layer."""
    import torch
    from vllm.model_executor.models.config import MODELS_CONFIG_MAP
    from vllm.utils.torch_utils import get_dtype_size

    (architecture,) = config["architectures"]
    text = SimpleNamespace(**config.get("text_config", config))
    settings = SimpleNamespace(
        model_config=SimpleNamespace(hf_config=text, hf_text_config=text, dtype=torch.bfloat16),
        cache_config=SimpleNamespace(mamba_cache_dtype="auto", mamba_ssm_cache_dtype="auto"),
        parallel_config=SimpleNamespace(tensor_parallel_size=1),
        speculative_config=None,
        num_speculative_tokens=0,
    )
    MODELS_CONFIG_MAP[architecture].verify_and_update_config(settings)
    network = take_class(architecture)
    shapes = network.get_mamba_state_shape_from_config(settings)
    dtypes = network.get_mamba_state_dtype_from_config(settings)
    for shape, dtype in zip(shapes, dtypes, strict=True):
        yield prod(shape) * get_dtype_size(dtype)


if __name__ == "__main__":
    {"write": write, "serve": serve}[sys.argv[1]](Path(sys.argv[2]))
