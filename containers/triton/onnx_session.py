"""Runs the encoder and the decoder step with ONNX Runtime, on the CPU.

`containers/tensorrt/export/t5.py` has the graphs' inputs and outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from containers.serving.onnx_session import open_graph
from containers.tensorrt.stepping import LOGITS, cache_names
from containers.triton.decoding import Float32Array, Int64Array
from containers.triton.model_directory import DECODER_GRAPH, ENCODER_GRAPH


@dataclass(frozen=True)
class State:
    """The keys and values of a batch's rows; the mask is [rows, columns of the prompts].

    `cross` is of the prompts: key 0, value 0, key 1, ... of [rows, heads, columns, head_dim].
    `past` is of the answers so far, [rows, heads, tokens, head_dim]. The mask is 0 on padding.
    """

    mask: Int64Array
    cross: Sequence[Float32Array]
    past: Sequence[Float32Array]


class OnnxSequenceSession:
    """A `SequenceSession` with its state in the host's memory; see `open_graph`."""

    def __init__(self, model_dir: Path, *, threads: int) -> None:
        self._encoder = open_graph(model_dir / ENCODER_GRAPH, threads=threads)
        self._decoder = open_graph(model_dir / DECODER_GRAPH, threads=threads)
        self._cross_names = [output.name for output in self._encoder.get_outputs()]
        layers = len(self._cross_names) // 2
        self._past_names = cache_names("past_key_values", layers)
        self._outputs = [LOGITS, *cache_names("present", layers)]

    def encode(self, input_ids: Int64Array, attention_mask: Int64Array) -> State:
        feeds = {"input_ids": input_ids, "attention_mask": attention_mask}
        cross = self._encoder.run(self._cross_names, feeds)
        rows, heads, _, width = cross[0].shape
        empty = np.zeros((rows, heads, 0, width), dtype=cross[0].dtype)
        return State(attention_mask, cross, [empty] * len(cross))

    def step(self, tokens: Int64Array, state: State) -> tuple[Float32Array, State]:
        feeds: dict[str, Int64Array | Float32Array] = {
            "input_ids": tokens,
            "encoder_attention_mask": state.mask,
        }
        feeds |= dict(zip(self._past_names, state.past, strict=True))
        feeds |= dict(zip(self._cross_names, state.cross, strict=True))
        logits, *present = self._decoder.run(self._outputs, feeds)
        return logits[:, -1, :], State(state.mask, state.cross, present)

    def select(self, state: State, rows: Sequence[int]) -> State:
        return State(
            state.mask[rows],
            [tensor[rows] for tensor in state.cross],
            [tensor[rows] for tensor in state.past],
        )
