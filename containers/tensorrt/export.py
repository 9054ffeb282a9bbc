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
| in `past_key_values.{layer}.key`, `.value` | float | [batch, heads, past, head_dim] |
| out `logits` | float | [batch, 1, vocabulary] |
| out `present.{layer}.key`, `.value` | float | [batch, heads, past+sequence, head_dim] |

`float` is float32 in a graph of precision fp32, and float16 in one of precision fp16, which has
float16 weights and float16 between all operators too, as the Hugging Face model has after
`.half()`: only the sums inside a layer norm are float32 (ONNX's `stash_type`). The types in the
graph are all that a strongly typed TensorRT network needs.

Prompts of unequal length are padded on the left; positions count from a prompt's first real token.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import torch
from transformers import DynamicCache, GPT2LMHeadModel

from containers.tensorrt.external_data import ExportError

Precision: TypeAlias = Literal["fp32", "fp16"]

OPSET_VERSION = 20
# The largest difference accepted between two float32 implementations of one model.
LOGIT_TOLERANCE = 2e-3
# The same for float16, as a share of the largest logit, since float16 rounds in proportion to what
# it rounds. ONNX Runtime and PyTorch differed by at most 0.0058 over 3,300 positions: the committed
# sample and random models of 2 to 12 layers with logits from 0.4 to 19. Either was about as far
# from the float32 model.
HALF_LOGIT_TOLERANCE = 1e-2

_MODEL_TYPES: Final[dict[Precision, torch.dtype]] = {"fp32": torch.float32, "fp16": torch.float16}
_NUMPY_TYPES: Final = {"tensor(float)": np.float32, "tensor(float16)": np.float16}

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating[Any]]


class ParityError(ExportError):
    """The exported graph computes something else than the model it was made from."""


@dataclass(frozen=True)
class Parity:
    """What a check of a graph against its model compared, and how close they were.

    Attributes:
        prompts: Prompts compared, each alone and all as one padded batch.
        tokens: Greedy tokens of the model whose logits were compared.
        ties: Tokens that the graph would have chosen otherwise. The model's logits of the two
            tokens are then closer than twice the tolerance: rare in float32, about one in a
            thousand in float16, where equal logits are common.
        largest_logit_difference: Over all steps.
    """

    prompts: int
    tokens: int
    ties: int
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
    model: GPT2LMHeadModel,
    path: Path,
    *,
    precision: Precision = "fp32",
    opset_version: int = OPSET_VERSION,
) -> None:
    """Writes the step graph of a GPT-2 language model, weights included, to one ONNX file.

    Args:
        model: A `GPT2LMHeadModel` whose weights have the type that `precision` names.
        path: The ONNX file to write; its directory exists.
        precision: Of weights, cache and logits. The ONNX Runtime back end serves fp32; fp16 is for
            TensorRT engines.
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
    if model.dtype != _MODEL_TYPES[precision]:
        raise ExportError(
            f"cannot export a {model.dtype} model as {precision}: load it with "
            f"from_pretrained(..., dtype={_MODEL_TYPES[precision]})"
        )
    layers, heads = config.n_layer, config.n_head
    head_dim = config.n_embd // heads
    # Example sizes above 1: torch.export would take a size of 1 for a constant.
    batch, sequence, past = 2, 3, 5
    cache = [
        torch.zeros(batch, heads, past, head_dim, dtype=model.dtype) for _ in range(2 * layers)
    ]
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
    past: Sequence[FloatArray] = (),
) -> tuple[FloatArray, list[FloatArray]]:
    """Runs one step on ONNX Runtime.

    Args:
        session: The step graph.
        input_ids: This step's tokens, [batch, sequence].
        attention_mask: Over past and present, [batch, past+sequence].
        past: What the step before returned; nothing at prefill.

    Returns:
        The last position's logits, [batch, vocabulary], and the cache for the next step, both in
        the graph's precision.
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
            past[index]
            if past
            else np.zeros((batch, heads, 0, head_dim), dtype=_NUMPY_TYPES[cache_input.type])
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
    past: list[FloatArray] = []
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
    """Checks a graph's form, and its logits along the model's own greedy tokens.

    The logits of every step, with the graph's own cache, are within the tolerance of the graph's
    precision: so are its greedy tokens the model's, but for ties.

    Args:
        path: The step graph; external data lies beside it.
        model: The model that it was exported from, in the graph's precision.
        prompts: Token ids per prompt; unequal lengths make the check cover padding.
        new_tokens: Tokens to generate per prompt at most; the model's end token ends a row.

    Raises:
        ParityError: The graph is malformed or of another precision, or logits differ.
    """
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ParityError(f"{path} is not a valid ONNX model: {error}") from error
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    graph_type = np.dtype(_NUMPY_TYPES[session.get_outputs()[0].type]).name
    if f"torch.{graph_type}" != str(model.dtype):
        raise ParityError(
            f"{path} computes in {graph_type}, and the model is {model.dtype}: compare it with "
            f"from_pretrained(..., dtype=torch.{graph_type})"
        )
    compared = [
        _compare_steps(path, session, model, group, new_tokens)
        for group in (list(prompts), *([prompt] for prompt in prompts))
    ]
    return Parity(
        prompts=len(prompts),
        tokens=sum(group.tokens for group in compared),
        ties=sum(group.ties for group in compared),
        largest_logit_difference=max(group.largest_logit_difference for group in compared),
    )


def _compare_steps(
    path: Path,
    session: onnxruntime.InferenceSession,
    model: GPT2LMHeadModel,
    prompts: Sequence[Sequence[int]],
    new_tokens: int,
) -> Parity:
    """Compares one batch, step by step; see `check_step_graph`."""
    pad_token_id = model.generation_config.pad_token_id or 0
    input_ids, attention_mask = left_padded(prompts, pad_token_id)
    reference = model.generate(
        torch.from_numpy(input_ids),
        attention_mask=torch.from_numpy(attention_mask),
        do_sample=False,
        max_new_tokens=new_tokens,
        pad_token_id=pad_token_id,
        return_dict_in_generate=True,
        output_logits=True,
    )
    tokens = reference.sequences[:, input_ids.shape[1] :].numpy()
    ties, largest_difference = 0, 0.0
    past: list[FloatArray] = []
    for step, step_logits in enumerate(reference.logits):
        logits, past = run_step(session, input_ids, attention_mask, past)
        expected = step_logits.float().numpy()
        differences = np.abs(logits.astype(np.float32) - expected).max(axis=-1)
        if model.dtype == torch.float16:
            tolerances = HALF_LOGIT_TOLERANCE * np.abs(expected).max(axis=-1)
        else:
            tolerances = np.full(len(prompts), LOGIT_TOLERANCE)
        within = differences <= tolerances  # false for what is not a number
        if not within.all():
            row = int(within.argmin())
            cause = "mishandles its cache" if step else "was made from other weights"
            raise ParityError(
                f"{path}: logits of token {step + 1} after the prompt {list(prompts[row])} differ "
                f"by up to {differences[row]:.2g} from the model's, and at most "
                f"{tolerances[row]:.2g} is rounding: the graph {cause}"
            )
        largest_difference = max(largest_difference, float(differences.max()))
        ties += int((logits.argmax(axis=-1) != expected.argmax(axis=-1)).sum())
        input_ids = tokens[:, step : step + 1]
        attention_mask = np.pad(attention_mask, ((0, 0), (0, 1)), constant_values=1)
    return Parity(
        prompts=len(prompts),
        tokens=tokens.size,
        ties=ties,
        largest_logit_difference=largest_difference,
    )
