"""The shape of published networks, from the fields that decide it in their config.json files.

Each expected number follows from the class of transformers, or from the model's own code.
"""

import pytest

from slipway.config.networks import Network

GEMMA_3_4B = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
        "sliding_window": 1024, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    },
}  # fmt: skip
LLAMA_4_SCOUT = {
    "model_type": "llama4",
    "text_config": {
        "model_type": "llama4_text", "hidden_size": 5120, "num_hidden_layers": 48,
        "num_attention_heads": 40, "num_key_value_heads": 8, "attention_chunk_size": 8192,
        "max_position_embeddings": 10485760, "vocab_size": 202048, "num_local_experts": 16,
        "num_experts_per_tok": 1, "no_rope_layers": [1, 1, 1, 0] * 12,
    },
}  # fmt: skip
QWEN_2_5_OMNI = {
    "model_type": "qwen2_5_omni",
    "thinker_config": {
        "text_config": {
            "model_type": "qwen2_5_omni_text", "hidden_size": 3584, "num_hidden_layers": 28,
            "num_attention_heads": 28, "num_key_value_heads": 4,
        }
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "shape"),
    [
        pytest.param(
            GEMMA_3_4B,
            # Its file leaves out what transformers has as defaults: heads, width and vocabulary.
            {"layers": 34, "hidden_size": 2560, "attention_heads": 8, "key_value_heads": 4,
             "head_size": 256, "positions": 131072, "vocabulary_size": 262208,
             "tied_embeddings": True, "sliding_window": 1024, "windowed_layers": 29},
            id="gemma-3-4b",
        ),
        pytest.param(
            LLAMA_4_SCOUT,
            {"layers": 48, "hidden_size": 5120, "attention_heads": 40, "key_value_heads": 8,
             "positions": 10485760, "vocabulary_size": 202048, "tied_embeddings": False,
             "sliding_window": 8192, "windowed_layers": 36, "experts": 16, "active_experts": 1},
            id="llama-4-scout",
        ),
        pytest.param(
            QWEN_2_5_OMNI,
            {"layers": 28, "hidden_size": 3584, "attention_heads": 28, "key_value_heads": 4,
             "positions": 32768, "vocabulary_size": 152064, "tied_embeddings": True},
            id="qwen2.5-omni",
        ),
        pytest.param(
            {"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168,
             "num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512,
             "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "n_routed_experts": 256,
             "num_experts_per_tok": 8, "max_position_embeddings": 163840, "vocab_size": 129280,
             "rope_scaling": {"type": "yarn", "factor": 40,
                              "original_max_position_embeddings": 4096},
             "tie_word_embeddings": False},
            {"layers": 61, "hidden_size": 7168, "attention_heads": 128, "latent_size": 576,
             "positions": 163840, "vocabulary_size": 129280, "tied_embeddings": False,
             "experts": 256, "active_experts": 8},
            id="deepseek-v3",
        ),
        pytest.param(
            # It has a latent rank, and vLLM keeps whole heads of 64 + 32.
            {"model_type": "minicpm3", "num_hidden_layers": 62, "hidden_size": 2560,
             "num_attention_heads": 40, "num_key_value_heads": 40, "kv_lora_rank": 256,
             "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "tie_word_embeddings": True,
             "max_position_embeddings": 32768, "vocab_size": 73448},
            {"layers": 62, "hidden_size": 2560, "attention_heads": 40, "head_size": 96,
             "positions": 32768, "vocabulary_size": 73448, "tied_embeddings": True},
            id="minicpm3",
        ),
    ],
)  # fmt: skip
def test_a_published_network_has_its_whole_shape(config, shape):
    assert Network(config).shape() == shape


HEADS = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}


@pytest.mark.parametrize(
    ("config", "heads"),
    [
        ({"model_type": "chatglm", "multi_query_attention": True, "multi_query_group_num": 2}, 2),
        ({"model_type": "chatglm", "multi_query_attention": False, "multi_query_group_num": 2},
         None),
        ({"model_type": "falcon", "multi_query": True, "num_kv_heads": 32}, 1),
        ({"model_type": "falcon", "multi_query": True, "new_decoder_architecture": True,
          "num_kv_heads": 8}, 8),
        ({"model_type": "falcon", "multi_query": True, "new_decoder_architecture": True,
          "n_head_kv": 8}, 8),
        ({"model_type": "gpt_bigcode", "multi_query": True}, 1),
        ({"model_type": "mpt", "attn_config": {"kv_n_heads": 8}}, 8),
        ({"model_type": "step3p5", "num_attention_groups": 8}, 8),
        ({"model_type": "phi3", "num_key_value_heads": None}, None),
        ({"model_type": "internvl_chat", "llm_config": HEADS | {"num_key_value_heads": 4}}, 4),
        ({"model_type": "x", "language_config": {"num_key_value_heads": 4}}, 4),
    ],
)  # fmt: skip
def test_heads_of_keys_and_values_have_many_names(config, heads):
    assert Network(HEADS | config).shape().get("key_value_heads") == heads


@pytest.mark.parametrize(
    ("config", "window", "windowed"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, 4096, 32),
        ({"model_type": "mistral", "sliding_window": None}, None, None),
        # The class of Mistral has a window unless the file denies it.
        ({"model_type": "mistral"}, 4096, 32),
        ({"model_type": "gemma2", "sliding_window": 4096, "max_position_embeddings": 8192},
         4096, 16),
        ({"model_type": "gemma3_text", "sliding_window": 512, "sliding_window_pattern": 4},
         512, 24),
        ({"model_type": "cohere2", "sliding_window": 4096, "sliding_window_pattern": 4}, 4096, 24),
        ({"model_type": "exaone4", "sliding_window": 4096, "sliding_window_pattern": "LLLG"},
         4096, 24),
        ({"model_type": "gpt_oss", "sliding_window": 128,
          "layer_types": ["sliding_attention", "full_attention"] * 16}, 128, 16),
        ({"model_type": "qwen2", "use_sliding_window": False, "sliding_window": 131072},
         None, None),
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 4096,
          "max_window_layers": 20}, 4096, 12),
        # A window as long as the longest text is none.
        ({"model_type": "phi3", "sliding_window": 4096, "max_position_embeddings": 4096},
         None, None),
        # Nobody knows which layers of an unknown network have it: all are taken as full ones.
        ({"model_type": "nobody_knows", "sliding_window": 4096}, None, None),
    ],
)  # fmt: skip
def test_windows_are_counted(config, window, windowed):
    shape = Network(HEADS | {"max_position_embeddings": 131072} | config).shape()
    assert (shape.get("sliding_window"), shape.get("windowed_layers")) == (window, windowed)
    assert "cached_layers" not in shape


@pytest.mark.parametrize(
    ("config", "layers", "cached"),
    [
        ({"model_type": "qwen3_next", "full_attention_interval": 4}, 32, 8),
        ({"model_type": "qwen3_next",
          "layer_types": ["linear_attention", "full_attention"] * 16}, 32, 16),
        ({"model_type": "jamba", "attn_layer_period": 8, "attn_layer_offset": 4}, 32, 4),
        ({"model_type": "granitemoehybrid", "layer_types": ["mamba"] * 28 + ["attention"] * 4},
         32, 4),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "M-M*-M-E" * 4}, 32, 4),
        # Lists of a part of the layers, and of something else than kinds, tell nothing.
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "M-M*-M-E"}, 32, None),
        ({"model_type": "qwen3", "layer_types": ["full_attention"] * 5}, 32, None),
        ({"model_type": "own", "layer_types": ["dense"] * 3 + ["moe"] * 29}, 32, None),
        ({"model_type": "own", "layer_types": [{"kind": 1}] * 32}, 32, None),
        ({"model_type": "bamba", "attn_layer_indices": [9, 18, 27]}, 32, 3),
        ({"model_type": "lfm2", "full_attn_idxs": [2, 5, 8]}, 32, 3),
        ({"model_type": "minimax_text_01", "attn_type_list": [0, 0, 0, 1] * 8}, 32, 8),
        ({"model_type": "kimi_linear", "linear_attn_config": {"full_attn_layers": [4, 8]}}, 32, 2),
        # The last 15 layers use keys and values of earlier ones.
        ({"model_type": "gemma3n_text", "num_kv_shared_layers": 15}, 32, 17),
        ({"model_type": "falcon_h1"}, 32, None),
        ({"model_type": "bert"}, 32, 0),
        ({"model_type": "modernbert"}, 32, 0),
        ({"model_type": "bert", "is_decoder": True}, 32, None),
        ({"model_type": "gemma3_text", "use_bidirectional_attention": True}, 32, 0),
    ],
)  # fmt: skip
def test_layers_that_keep_nothing_are_not_counted(config, layers, cached):
    shape = Network(HEADS | config).shape()
    assert (shape["layers"], shape.get("cached_layers")) == (layers, cached)


# Bytes of one layer by `MambaStateShapeCalculator` and `MambaStateDtypeCalculator` of vLLM 0.17.
@pytest.mark.parametrize(
    ("config", "layers", "each"),
    [
        ({"model_type": "bamba", "attn_layer_indices": [9, 18, 27], "mamba_expand": 2,
          "mamba_n_heads": 128, "mamba_d_head": "auto", "mamba_n_groups": 1, "mamba_d_state": 256,
          "mamba_d_conv": 4}, 29, 4_246_528),
        ({"model_type": "granitemoehybrid", "layer_types": ["mamba"] * 28 + ["attention"] * 4,
          "mamba_expand": 2, "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 1,
          "mamba_d_state": 128, "mamba_d_conv": 4}, 28, 2_147_840),
        # Layers with an E or a - are feed-forward ones.
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "M-M*-M-E" * 4,
          "mamba_num_heads": 64, "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128,
          "conv_kernel": 4, "mamba_ssm_cache_dtype": "float32"}, 12, 2_134_016),
        # These layers have attention and a state.
        ({"model_type": "zamba2", "layers_block_type": ["mamba", "hybrid"] * 16,
          "hidden_size": 2560, "mamba_expand": 2, "n_mamba_heads": 80, "mamba_headdim": 64,
          "mamba_ngroups": 2, "mamba_d_state": 64, "mamba_d_conv": 4}, 32, 687_616),
        ({"model_type": "mamba2", "num_heads": 128, "head_dim": 64, "expand": 2, "n_groups": 8,
          "state_size": 128, "conv_kernel": 4}, 32, 2_158_592),
        ({"model_type": "jamba", "attn_layer_period": 8, "attn_layer_offset": 4, "head_dim": 128,
          "mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4}, 28, 311_296),
        ({"model_type": "qwen3_next", "full_attention_interval": 4, "linear_num_key_heads": 16,
          "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
          "linear_conv_kernel_dim": 4}, 24, 1_097_728),
        ({"model_type": "kimi_linear", "head_dim": 72, "linear_attn_config":
          {"full_attn_layers": [4, 8], "head_dim": 128, "num_heads": 32,
           "short_conv_kernel_size": 4}}, 30, 2_170_880),
        # Sizes that the file does not say are not guessed.
        ({"model_type": "qwen3_next", "full_attention_interval": 4}, 24, None),
        ({"model_type": "minimax_text_01", "attn_type_list": [0, 0, 0, 1] * 8}, 24, None),
    ],
)  # fmt: skip
def test_states_of_a_request_are_counted(config, layers, each):
    expected = each if each is None else layers * each
    assert Network(HEADS | config).shape().get("state_bytes") == expected


def test_no_field_is_told_without_its_counterpart():
    mamba = {"model_type": "mamba2", "num_hidden_layers": 64, "num_heads": 128, "state_size": 128}
    shape = Network(mamba).shape()
    assert shape["cached_layers"] == 0
    assert not {"attention_heads", "head_size"} & shape.keys()
    alone = {"tie_word_embeddings": True, "sliding_window": 512, "num_experts_per_tok": 2}
    assert Network({"model_type": "nobody_knows"} | alone).shape() == {}


@pytest.mark.parametrize(
    ("config", "experts"),
    [
        ({"num_local_experts": 8, "num_experts_per_tok": 2}, (8, 2)),
        ({"num_experts": 64, "moe_topk": [6, 8]}, (64, 8)),
        ({"ffn_config": {"moe_num_experts": 16, "moe_top_k": 4}}, (16, 4)),
        ({"n_routed_experts": None, "num_experts_per_tok": None}, (None, None)),
        ({"num_local_experts": 0, "num_experts_per_tok": 0}, (None, None)),
        ({"num_experts": 1}, (None, None)),
    ],
)  # fmt: skip
def test_experts(config, experts):
    shape = Network({"model_type": "x"} | config).shape()
    assert (shape.get("experts"), shape.get("active_experts")) == experts


@pytest.mark.parametrize(
    ("config", "positions"),
    [
        ({"model_type": "t5", "n_positions": 512}, None),
        ({"model_type": "xlm-roberta", "max_position_embeddings": 8194, "pad_token_id": 1}, 8192),
        ({"model_type": "llama", "max_position_embeddings": 4096,
          "rope_scaling": {"type": "linear", "factor": 4.0}}, 16384),
        ({"model_type": "qwen2", "max_position_embeddings": 32768,
          "rope_scaling": {"type": "yarn", "factor": 4.0,
                           "original_max_position_embeddings": 32768}}, 131072),
        ({"model_type": "llama", "max_position_embeddings": 131072,
          "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 131072),
        ({"model_type": "cohere", "max_position_embeddings": 8192, "model_max_length": 131072},
         131072),
        ({"model_type": "x", "max_position_embeddings": 10,
          "rope_scaling": {"type": "linear", "factor": float("inf")}}, 10),
    ],
)  # fmt: skip
def test_positions(config, positions):
    assert Network(config).positions == positions


@pytest.mark.parametrize(
    "config",
    [
        {"num_hidden_layers": 10**12, "num_attention_heads": 2},
        {"model_type": 7, "text_config": [], "quantization_config": 1, "num_hidden_layers": "4"},
        {"num_hidden_layers": 4, "layer_types": [1, {}], "attn_config": 3, "rope_scaling": "x"},
        {"num_hidden_layers": 4, "hybrid_override_pattern": 3, "sliding_window_pattern": -1},
        {"num_hidden_layers": 4, "linear_attn_config": {"full_attn_layers": ["a", None]}},
        {"num_hidden_layers": 4, "linear_attn_config": {"full_attn_layers": 7}},
        {"num_hidden_layers": 4, "num_kv_shared_layers": 9},
        {"num_hidden_layers": True, "num_attention_heads": -3, "num_experts": [None, "a"]},
        {"model_type": "roberta", "max_position_embeddings": 8, "pad_token_id": "a"},
    ],
)
def test_a_config_of_wrong_types_tells_what_it_can(config):
    shape = Network(config).shape()
    assert all(type(value) in (int, bool) for value in shape.values())
