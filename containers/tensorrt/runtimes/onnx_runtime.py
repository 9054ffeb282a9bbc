"""Runs the step graph with ONNX Runtime: the reference, and the back end without an engine.

It runs on the CPU, unless ONNX Runtime has CUDA and finds a GPU. With a GPU, the cache crosses to
the GPU and back in every step, so only an engine uses a GPU well.

The graph's contract: inputs `input_ids`, `attention_mask`, `position_ids` (int64) and
`past_key_values.{i}.key` / `.value` (float32). Outputs `logits` [batch, 1, vocabulary], of the last
position only, and `present.{i}.key` / `.value`. One graph does prefill and decoding.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import onnxruntime

from containers.serving.onnx_session import open_graph
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.model_directory import GRAPH_FILE, ModelConfig
from containers.tensorrt.stepping import (
    LOGITS,
    STEP_INPUTS,
    Float32Array,
    Int64Array,
    cache_names,
)

# Key 0, value 0, key 1, ...; each [rows, heads, columns, head_dim].
Cache: TypeAlias = Sequence[Float32Array]

_TENSOR_TYPES: Final = dict.fromkeys(STEP_INPUTS, "tensor(int64)")
_CACHE_TYPE: Final = "tensor(float)"
# In the order of preference.
_PROVIDERS: Final = {"CUDAExecutionProvider": "cuda", "CPUExecutionProvider": "cpu"}


class OnnxRuntimeSession:
    """A `StepSession` with its cache in the host's memory.

    Args:
        model_dir: holds model.onnx and, beside it, the files of its external data.
        config: gives the number of layers, heads and the width of a head.
        intra_op_threads: threads per operator; None takes one per physical core.

    Raises:
        ModelLoadError: ONNX Runtime cannot load the graph, or its inputs and outputs do not match a
            step graph of this config.
    """

    def __init__(
        self, model_dir: Path, config: ModelConfig, *, intra_op_threads: int | None
    ) -> None:
        available = onnxruntime.get_available_providers()
        self._session = open_graph(
            model_dir / GRAPH_FILE,
            threads=intra_op_threads or 0,
            providers=[name for name in _PROVIDERS if name in available],
        )
        self._config = config
        self._past_names = cache_names("past_key_values", config.layers)
        self._output_names = [LOGITS, *cache_names("present", config.layers)]
        self._check_graph()

    @property
    def device(self) -> str:
        """Returns the device that computes, "cuda" or "cpu".

        ONNX Runtime skips a provider that finds no GPU.
        """
        return _PROVIDERS[self._session.get_providers()[0]]

    def prefill(
        self, input_ids: Int64Array, attention_mask: Int64Array, position_ids: Int64Array
    ) -> tuple[Float32Array, Cache]:
        """Runs whole prompts; see `StepSession.prefill`.

        Args:
            input_ids: [rows, columns], padded on the left.
            attention_mask: [rows, columns], 0 on padding.
            position_ids: [rows, columns].
        """
        shape = (len(input_ids), self._config.heads, 0, self._config.head_dim)
        empty = [np.zeros(shape, dtype=np.float32) for _ in self._past_names]
        return self.step(input_ids, attention_mask, position_ids, empty)

    def step(
        self,
        input_ids: Int64Array,
        attention_mask: Int64Array,
        position_ids: Int64Array,
        cache: Cache,
    ) -> tuple[Float32Array, Cache]:
        """Runs the graph once; see `StepSession.step`.

        Args:
            input_ids: [rows, columns], one column after prefill.
            attention_mask: [rows, past columns + columns], 0 on padding.
            position_ids: [rows, columns].
            cache: [rows, heads, past columns, head_dim] per tensor.
        """
        feeds = dict(
            zip(STEP_INPUTS, (input_ids, attention_mask, position_ids), strict=True)
        ) | dict(zip(self._past_names, cache, strict=True))
        logits, *present = self._session.run(self._output_names, feeds)
        return logits[:, -1, :], present

    def select(self, cache: Cache, rows: Sequence[int], first_column: int) -> Cache:
        """Copies rows; see `StepSession.select`.

        Args:
            cache: not changed.
            rows: rows of the cache, in the order of the result.
            first_column: columns before it are left out.
        """
        return [tensor[rows, :, first_column:, :] for tensor in cache]

    def concatenate(self, first: Cache, second: Cache) -> Cache:
        """Joins two caches; see `StepSession.concatenate`."""
        return [_stack(upper, lower) for upper, lower in zip(first, second, strict=True)]

    def _check_graph(self) -> None:
        expected = _TENSOR_TYPES | dict.fromkeys(self._past_names, _CACHE_TYPE)
        inputs = {item.name: item.type for item in self._session.get_inputs()}
        outputs = {item.name for item in self._session.get_outputs()}
        problems = [
            f"input {name} is {inputs[name]} instead of {tensor_type}"
            if name in inputs
            else f"input {name} is missing"
            for name, tensor_type in expected.items()
            if inputs.get(name) != tensor_type
        ]
        problems += [f"input {name} is unknown" for name in inputs if name not in expected]
        problems += [
            f"output {name} is missing" for name in self._output_names if name not in outputs
        ]
        if problems:
            raise ModelLoadError(
                f"{GRAPH_FILE} is not a step graph with {self._config.layers} layers: "
                f"{'; '.join(problems)}"
            )


def _stack(upper: Float32Array, lower: Float32Array) -> Float32Array:
    """Returns the rows of both, the shorter cache padded with zeros in front."""
    rows, heads, columns, head_dim = upper.shape
    longest = max(columns, lower.shape[2])
    both = np.zeros((rows + len(lower), heads, longest, head_dim), dtype=np.float32)
    both[:rows, :, longest - columns :] = upper
    both[rows:, :, longest - lower.shape[2] :] = lower
    return both
