"""Small checkpoints whose JSON files are as those of published models."""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
_BYTES = {"BF16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1}
_QWEN3 = {
    "head_dim": 128, "max_position_embeddings": 40960, "sliding_window": None,
    "torch_dtype": "bfloat16", "vocab_size": 151936, "use_sliding_window": False,
}  # fmt: skip
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "gemma-3-12b-it": {
        "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
        "torch_dtype": "bfloat16", "mm_tokens_per_image": 256,
        "text_config": {
            "hidden_size": 3840, "num_attention_heads": 16, "num_hidden_layers": 48,
            "num_key_value_heads": 8, "sliding_window": 1024, "model_type": "gemma3_text",
            "head_dim": 256, "max_position_embeddings": 131072,
        },
        "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"},
    },
    "qwen3-30b-a3b-fp8": {
        **_QWEN3, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
        "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4,
        "num_hidden_layers": 48, "num_experts": 128, "num_experts_per_tok": 8,
        "tie_word_embeddings": False,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    },
    "qwen3-embedding-0.6b": {
        **_QWEN3, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
        "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 8,
        "num_hidden_layers": 28, "tie_word_embeddings": True,
    },
    "bge-m3": {
        "architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta", "hidden_size": 1024,
        "num_attention_heads": 16, "num_hidden_layers": 24, "max_position_embeddings": 8194,
        "torch_dtype": "float32", "vocab_size": 250002,
    },
    "bge-reranker-v2-m3": {
        "architectures": ["XLMRobertaForSequenceClassification"], "model_type": "xlm-roberta",
        "hidden_size": 1024, "num_attention_heads": 16, "num_hidden_layers": 24,
        "max_position_embeddings": 8194, "torch_dtype": "float32", "vocab_size": 250002,
        "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0},
    },
}  # fmt: skip
_CHAT = {"tokenizer_config.json": {"chat_template": TEMPLATE}}
_POOLED = {"modules.json": [{"idx": 1, "name": "1", "path": "1_Pooling"}]}
_OTHERS: Mapping[str, Mapping[str, Any]] = {
    "gemma-3-12b-it": _CHAT,
    "qwen3-30b-a3b-fp8": {**_CHAT, "generation_config.json": {"max_new_tokens": 512}},
    "qwen3-embedding-0.6b": {**_CHAT, **_POOLED},
    "bge-m3": _POOLED,
    "bge-reranker-v2-m3": {},
}


def published(name: str, tensors: Mapping[str, tuple[str, list[int]]]) -> dict[str, bytes]:
    """Returns the files of a checkpoint by path, with a precision and shape for each tensor."""
    documents = {"config.json": CONFIGS[name], "tokenizer.json": {}, **_OTHERS[name]}
    files = {path: json.dumps(document).encode() for path, document in documents.items()}
    return {**files, "model.safetensors": safetensors(tensors)}


def safetensors(
    tensors: Mapping[str, tuple[str, Sequence[int]]], content: bytes | None = None
) -> bytes:
    """Returns a safetensors file, with zeros for weights unless their content is given."""
    header, end = {}, 0
    for name, (dtype, shape) in tensors.items():
        begin, end = end, end + _BYTES[dtype] * math.prod(shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + (bytes(end) if content is None else content)
