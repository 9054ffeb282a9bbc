"""Small random T5 models, checkpoints of them as transformers loads them, and their graphs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from containers.serving.model_files import CONFIG_FILE
from containers.tensorrt.engine_metadata import ModelSizes
from containers.tensorrt.stepping import cache_names

if TYPE_CHECKING:
    from transformers import T5ForConditionalGeneration

VOCABULARY = 97
END = 1
HEADS, HEAD_DIM = 3, 16


@dataclass(frozen=True)
class T5Graphs:
    model: T5ForConditionalGeneration
    encoder: Path
    decoder: Path

    @property
    def sizes(self):
        return ModelSizes(self.model.config.num_decoder_layers, HEADS, HEAD_DIM, VOCABULARY)

    def check(self, given, *, model=None, decoder=None, **options):
        from containers.tensorrt.export.parity import check_t5_graphs

        model, decoder = model or self.model, decoder or self.decoder
        return check_t5_graphs(self.encoder, decoder, model, given, **options)


def signature(values):
    """The name, type and dimensions of each input or output of an ONNX graph."""
    types = [(value.name, value.type.tensor_type) for value in values]
    return [
        (name, kind.elem_type, tuple(d.dim_param or d.dim_value for d in kind.shape.dim))
        for name, kind in types
    ]


def cache_signature(prefix, sizes, length, kind):
    shape = ("batch", sizes.heads, length, sizes.head_dim)
    return [(name, kind, shape) for name in cache_names(prefix, sizes.layers)]


def unused_inputs(graph):
    used = {name for node in graph.node for name in node.input}
    return [each.name for each in graph.input if each.name not in used]


def changed(path, directory, change):
    """Returns a copy of a graph after `change`."""
    import onnx

    model = onnx.load(path)
    change(model.graph)
    onnx.save(model, directory / path.name)
    return directory / path.name


def prompts(seed, *lengths):
    """Random prompts of these lengths, each with the end of text that T5's tokenizer adds."""
    numbers = np.random.default_rng(seed)
    return [[*numbers.integers(2, VOCABULARY, size=n - 1).tolist(), END] for n in lengths]


def random_t5(*, seed, gated, encoder_layers, decoder_layers, **config):
    """A T5 whose greedy tokens vary with the prompt.

    A gated model has FLAN-T5's feed-forward layers and a head of its own; else it has those of the
    first T5, and the embedding as its head.
    """
    import torch
    import transformers

    torch.manual_seed(seed)
    model = transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=VOCABULARY,
            d_model=40,
            d_kv=HEAD_DIM,
            d_ff=56,
            num_heads=HEADS,
            num_layers=encoder_layers,
            num_decoder_layers=decoder_layers,
            feed_forward_proj="gated-gelu" if gated else "relu",
            tie_word_embeddings=not gated,
            decoder_start_token_id=0,
            **config,
        )
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                # Norms start out all equal, and the exporter merges tensors that are equal.
                parameter.add_(torch.randn_like(parameter) * 0.1)
            elif "relative_attention_bias" in name:
                parameter.copy_(torch.randn_like(parameter))
            elif ".q." in name:
                # Attention that tells tokens apart.
                parameter.mul_(3)
        if gated:
            model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight))
        else:
            # A head that is the embedding would else say again what it is given.
            model.shared.weight.mul_(0.2)
    return model.eval()


def add_outliers(model):
    """Makes the feed-forward layers put out numbers beyond float16's, as trained models do.

    They do so in one channel, which the last norm then scales down. Everything else that layers add
    to is larger as well, which changes nothing but that the channel does not drown it. For a model
    whose stacks have one layer.
    """
    import torch

    channel = 5
    with torch.no_grad():
        model.shared.weight.mul_(5000)
        for stack in (model.encoder, model.decoder):
            (block,) = stack.block
            block.layer[0].SelfAttention.o.weight.mul_(5000)
            if stack.is_decoder:
                block.layer[1].EncDecAttention.o.weight.mul_(5000)
            block.layer[-1].DenseReluDense.wo.weight.mul_(5000)
            block.layer[-1].DenseReluDense.wo.weight[channel].mul_(20)
            norm = stack.final_layer_norm.weight
            kept = norm[channel] * 0.1
            norm.mul_(3)
            norm[channel] = kept


def save_checkpoint(model, directory):
    """Writes a checkpoint whose config.json says of the head what the Hub's T5 checkpoints say."""
    is_tied = model.lm_head.weight is model.shared.weight
    model.save_pretrained(directory)
    path = directory / CONFIG_FILE
    config = json.loads(path.read_text("utf-8"))
    config.pop("scale_decoder_outputs", None)
    config["tie_word_embeddings"] = is_tied
    path.write_text(json.dumps(config), "utf-8")
