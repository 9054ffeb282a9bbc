"""Turns a Hugging Face GPT-2 into the ONNX step graph that the TensorRT container runs.

Only people who export need torch, transformers and onnx (`pip install -r requirements-export.txt`):
nothing that serves imports this module.

One graph does prefill and decoding. It takes the tokens of one step and the keys and values of all
steps before (none at prefill), and returns the logits of the last position and the grown keys and
values, which the caller feeds to the next step:

| name | type | shape |
|---|---|---|
| in `input_ids` | int64 | [batch, sequence] |
| in `attention_mask` | int64 | [batch, past+sequence], 0 on padding |
| in `position_ids` | int64 | [batch, sequence] |
| in `past_key_values.{layer}.key`, `.value` | float32 | [batch, heads, past, head_dim] |
| out `logits` | float32 | [batch, 1, vocabulary] |
| out `present.{layer}.key`, `.value` | float32 | [batch, heads, past+sequence, head_dim] |

Prompts of unequal length are padded on the left; positions count from a prompt's first real token.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import torch
from transformers import DynamicCache, GPT2LMHeadModel

from containers.tensorrt.external_data import ExportError

OPSET_VERSION = 20
# The largest difference accepted between two float32 implementations of one model.
LOGIT_TOLERANCE = 2e-3

IntArray = npt.NDArray[np.int64]


class ParityError(ExportError):
    """The exported graph computes something else than the model it was made from."""


@dataclass(frozen=True)
class Parity:
    """What a check of a graph against its model compared, and how close they were.

    Attributes:
        prompts: Prompts compared, each alone and all as one padded batch.
        tokens: Generated tokens compared; every one was equal.
        largest_logit_difference: Over the first step of the padded batch.
    """

    prompts: int
    tokens: int
    largest_logit_difference: float


class _StepModule(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # untyped without torch
    """The model with its cache as plain tensors, which is all that an ONNX graph can carry."""

    def __init__(self, model: GPT2LMHeadModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor,
        past_key_values: list[torch.Tensor],
    ) -> tuple[torch.Tensor, ...]:
        """One step; `past_key_values` alternates keys and values, layer by layer."""
        pairs = list(zip(past_key_values[0::2], past_key_values[1::2], strict=True))
        output = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=DynamicCache(ddp_cache_data=pairs),
            use_cache=True,
            logits_to_keep=1,
        )
        present = [
            states
            for layer in output.past_key_values.layers
            for states in (layer.keys, layer.values)
        ]
        return (output.logits, *present)


def cache_names(prefix: str, layers: int) -> list[str]:
    """The names of a cache's tensors in graph order; `prefix` is past_key_values or present."""
    return [f"{prefix}.{layer}.{kind}" for layer in range(layers) for kind in ("key", "value")]


def export_gpt2_step(
    model: GPT2LMHeadModel, path: Path, *, opset_version: int = OPSET_VERSION
) -> None:
    """Writes the step graph of a GPT-2 language model, weights included, to one ONNX file.

    Args:
        model: A float32 `GPT2LMHeadModel`.
        path: The ONNX file to write; its directory exists.
        opset_version: ONNX operator set; 20 has the fused GELU.

    Raises:
        ExportError: The model is of another family or precision.
    """
    config = model.config
    if config.model_type != "gpt2":
        raise ExportError(
            f"cannot export a model of type {config.model_type!r}: this step graph is gpt2's"
        )
    if config.add_cross_attention:
        raise ExportError(
            "cannot export a gpt2 model with add_cross_attention: the step graph has no encoder"
        )
    if model.dtype != torch.float32:
        raise ExportError(
            f"cannot export a {model.dtype} model: the graph's inputs and outputs are float32; "
            "load it with from_pretrained(..., dtype=torch.float32)"
        )
    layers, heads = config.n_layer, config.n_head
    head_dim = config.n_embd // heads
    # Example sizes above 1: torch.export would take a size of 1 for a constant.
    batch, sequence, past = 2, 3, 5
    cache = [torch.zeros(batch, heads, past, head_dim) for _ in range(2 * layers)]
    example = (
        torch.zeros(batch, sequence, dtype=torch.int64),
        torch.ones(batch, past + sequence, dtype=torch.int64),
        torch.arange(past, past + sequence).repeat(batch, 1),
        cache,
    )
    tokens_axes = {0: "batch", 1: "sequence"}
    with warnings.catch_warnings():
        # One notice per input that shares an axis name, and torch's use of its own old names.
        warnings.filterwarnings("ignore", message=r"# The axis name", category=UserWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        program = torch.onnx.export(
            _StepModule(model).eval(),
            example,
            dynamo=True,
            opset_version=opset_version,
            input_names=[
                "input_ids",
                "attention_mask",
                "position_ids",
                *cache_names("past_key_values", layers),
            ],
            output_names=["logits", *cache_names("present", layers)],
            dynamic_shapes={
                "input_ids": tokens_axes,
                "attention_mask": {0: "batch", 1: "past_and_sequence"},
                "position_ids": tokens_axes,
                "past_key_values": [{0: "batch", 2: "past"}] * len(cache),
            },
            verbose=False,
        )
    if program is None:
        raise RuntimeError("torch.onnx.export returns a program when dynamo=True")
    graph_model = program.model_proto
    _name_axes(graph_model)
    _drop_provenance(graph_model)
    onnx.save_model(graph_model, str(path))


def _name_axes(graph_model: onnx.ModelProto) -> None:
    """Gives the sum of past and sequence one name: the exporter has three spellings for it."""
    for value in (*graph_model.graph.input, *graph_model.graph.output):
        name, dimensions = value.name, value.type.tensor_type.shape.dim
        if name == "attention_mask":
            dimensions[1].dim_param = "past+sequence"
        elif name.startswith("present."):
            dimensions[2].dim_param = "past+sequence"


def _drop_provenance(graph_model: onnx.ModelProto) -> None:
    """Removes stack traces, which hold the exporting machine's paths, and inferred shapes.

    Without them the same model and package versions give the same bytes on every machine, and the
    graph is a few times smaller. Readers infer the shapes again.
    """
    graph = graph_model.graph
    del graph_model.metadata_props[:], graph.metadata_props[:], graph.value_info[:]
    graph_model.doc_string = graph.doc_string = ""
    for entry in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        entry.doc_string = ""
        del entry.metadata_props[:]


def left_padded(prompts: Sequence[Sequence[int]], pad_token_id: int) -> tuple[IntArray, IntArray]:
    """Token ids and attention mask, both [batch, longest prompt], of prompts padded on the left."""
    longest = max(len(prompt) for prompt in prompts)
    input_ids = np.full((len(prompts), longest), pad_token_id, dtype=np.int64)
    attention_mask = np.zeros((len(prompts), longest), dtype=np.int64)
    for row, prompt in enumerate(prompts):
        input_ids[row, longest - len(prompt) :] = prompt
        attention_mask[row, longest - len(prompt) :] = 1
    return input_ids, attention_mask


def run_step(
    session: onnxruntime.InferenceSession,
    input_ids: IntArray,
    attention_mask: IntArray,
    past: Sequence[npt.NDArray[np.float32]] = (),
) -> tuple[npt.NDArray[np.float32], list[npt.NDArray[np.float32]]]:
    """Runs one step on ONNX Runtime.

    Args:
        session: The step graph.
        input_ids: This step's tokens, [batch, sequence].
        attention_mask: Over past and present, [batch, past+sequence].
        past: What the step before returned; nothing at prefill.

    Returns:
        The last position's logits, [batch, vocabulary], and the cache for the next step.
    """
    batch, sequence = input_ids.shape
    positions = np.maximum(attention_mask.cumsum(axis=1) - 1, 0)[:, -sequence:]
    feeds = {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "position_ids": positions,
    }
    cache_inputs = [i for i in session.get_inputs() if i.name.startswith("past_key_values.")]
    for index, cache_input in enumerate(cache_inputs):
        _, heads, _, head_dim = cache_input.shape
        feeds[cache_input.name] = (
            past[index] if past else np.zeros((batch, heads, 0, head_dim), dtype=np.float32)
        )
    logits, *present = session.run(None, feeds)
    return logits[:, -1], present


def greedy_tokens(
    session: onnxruntime.InferenceSession,
    prompts: Sequence[Sequence[int]],
    *,
    new_tokens: int,
    end_token_id: int | None = None,
    pad_token_id: int = 0,
    cached: bool = True,
) -> IntArray:
    """Decodes greedily, as `generate(do_sample=False)` does, with the plainest possible loop.

    Args:
        session: The step graph.
        prompts: Token ids per prompt, of any lengths.
        new_tokens: The most tokens to generate.
        end_token_id: The token after which a row is finished; None generates all tokens.
        pad_token_id: Fills rows that finished before others.
        cached: False recomputes the whole sequence at every step.

    Returns:
        The generated tokens without the prompts, [batch, at most new_tokens].
    """
    input_ids, attention_mask = left_padded(prompts, pad_token_id)
    generated = np.zeros((len(prompts), 0), dtype=np.int64)
    finished = np.zeros(len(prompts), dtype=bool)
    past: list[npt.NDArray[np.float32]] = []
    while generated.shape[1] < new_tokens and not finished.all():
        logits, present = run_step(session, input_ids, attention_mask, past)
        chosen = np.where(finished, pad_token_id, logits.argmax(axis=-1))[:, None]
        finished |= chosen[:, 0] == end_token_id
        generated = np.concatenate([generated, chosen], axis=1)
        attention_mask = np.pad(attention_mask, ((0, 0), (0, 1)), constant_values=1)
        if cached:
            input_ids, past = chosen, present
        else:
            input_ids = np.concatenate([input_ids, chosen], axis=1)
    return generated


def check_step_graph(
    path: Path, model: GPT2LMHeadModel, prompts: Sequence[Sequence[int]], *, new_tokens: int = 20
) -> Parity:
    """Checks a graph's form, and its logits and greedy tokens against the model's own.

    Args:
        path: The step graph; external data lies beside it.
        model: The model that it was exported from, in float32.
        prompts: Token ids per prompt; unequal lengths make the check cover padding.
        new_tokens: Tokens to generate per prompt at most; the model's end token ends a row.

    Raises:
        ParityError: The graph is malformed, or logits or tokens differ.
    """
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ParityError(f"{path} is not a valid ONNX model: {error}") from error
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    end_token_id = model.generation_config.eos_token_id
    pad_token_id = model.generation_config.pad_token_id or 0

    input_ids, attention_mask = left_padded(prompts, pad_token_id)
    logits, _ = run_step(session, input_ids, attention_mask)
    positions = np.maximum(attention_mask.cumsum(axis=1) - 1, 0)
    with torch.no_grad():
        expected = model(
            input_ids=torch.from_numpy(input_ids),
            attention_mask=torch.from_numpy(attention_mask),
            position_ids=torch.from_numpy(positions),
        ).logits[:, -1]
    difference = float(np.abs(logits - expected.numpy()).max())
    if not difference <= LOGIT_TOLERANCE:
        raise ParityError(
            f"{path}: logits differ by up to {difference:.2g} from the model's, and at most "
            f"{LOGIT_TOLERANCE:.2g} is rounding: the graph was made from other weights"
        )

    compared = 0
    for group in (list(prompts), *([prompt] for prompt in prompts)):
        input_ids, attention_mask = left_padded(group, pad_token_id)
        reference = model.generate(
            torch.from_numpy(input_ids),
            attention_mask=torch.from_numpy(attention_mask),
            do_sample=False,
            max_new_tokens=new_tokens,
            pad_token_id=pad_token_id,
        )[:, input_ids.shape[1] :].numpy()
        tokens = greedy_tokens(
            session,
            group,
            new_tokens=new_tokens,
            end_token_id=end_token_id,
            pad_token_id=pad_token_id,
        )
        if not np.array_equal(tokens, reference):
            raise ParityError(
                f"{path}: generated {tokens.tolist()}, and the model generates "
                f"{reference.tolist()} for the prompts {[list(p) for p in group]}"
            )
        compared += tokens.size
    return Parity(prompts=len(prompts), tokens=compared, largest_logit_difference=difference)
