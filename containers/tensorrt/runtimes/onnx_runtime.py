"""Runs the step graph with ONNX Runtime: the reference, and the back end without an engine.

It runs on the CPU, unless ONNX Runtime has CUDA and finds a GPU. With a GPU, the cache crosses to
the GPU and back in every step, so only an engine uses a GPU well.

The graph's contract: inputs `input_ids`, `attention_mask`, `position_ids` (int64) and
`past_key_values.{i}.key` / `.value` (float32). Outputs `logits` [batch, 1, vocabulary], of the last
position only, and `present.{i}.key` / `.value`. One graph does prefill and decoding.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime

from containers.serving.onnx_session import open_graph
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.model_directory import GRAPH_FILE, ModelConfig
from containers.tensorrt.runtimes.host_cache import HostCache, HostCaches
from containers.tensorrt.stepping import (
    LOGITS,
    STEP_INPUTS,
    Float32Array,
    HostLogits,
    StepInputs,
    cache_names,
)

_TENSOR_TYPES: Final = dict.fromkeys(STEP_INPUTS, "tensor(int64)")
_CACHE_TYPE: Final = "tensor(float)"
# Binding a tensor takes some 3 microseconds, which smaller tensors do not pay back.
_LEAST_BOUND_BYTES: Final = 128 * 1024
# In the order of preference.
_PROVIDERS: Final = {"CUDAExecutionProvider": "cuda", "CPUExecutionProvider": "cpu"}


class OnnxRuntimeSession:
    """A `StepSession` with its cache in the host's memory.

    model.onnx may have its weights in files beside it. Without `intra_op_threads`, an operator has
    one thread per physical core. A `ModelLoadError` says why a graph cannot be loaded, or how its
    inputs and outputs differ from those of a step graph of this config.
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
        self._present_names = cache_names("present", config.layers)
        self._caches = HostCaches(
            tensors=2 * config.layers, heads=config.heads, head_dim=config.head_dim
        )
        self.select: Final = self._caches.select
        self.concatenate: Final = self._caches.concatenate
        self._column_bytes = config.heads * config.head_dim * np.dtype(np.float32).itemsize
        self._check_graph()

    @property
    def device(self) -> str:
        """Returns "cuda" or "cpu"; ONNX Runtime skips a provider that finds no GPU."""
        return _PROVIDERS[self._session.get_providers()[0]]

    def step(
        self,
        inputs: StepInputs,
        temperatures: Sequence[float] = (),
        cache: HostCache | None = None,
    ) -> tuple[HostLogits, HostCache]:
        del temperatures  # All logits are on the host.
        if cache is None:
            shape = (len(inputs.input_ids), self._config.heads, 0, self._config.head_dim)
            return self._run(inputs, [np.zeros(shape, dtype=np.float32) for _ in self._past_names])
        result = self._run(inputs, cache.tensors)
        cache.give_back()
        return result

    def _run(
        self, inputs: StepInputs, past: Sequence[Float32Array]
    ) -> tuple[HostLogits, HostCache]:
        feeds: dict[str, Any] = inputs._asdict()
        feeds |= dict(zip(self._past_names, past, strict=True))
        rows, columns = len(past[0]), past[0].shape[2] + inputs.input_ids.shape[1]
        if rows * columns * self._column_bytes < _LEAST_BOUND_BYTES:
            logits, *present = self._session.run([LOGITS, *self._present_names], feeds)
            return HostLogits(logits[:, -1, :]), self._caches.adopt(present)
        cache = self._caches.reserve(rows, columns)
        binding = self._session.io_binding()
        # The binding has the addresses alone, so that the arrays must live until the run's end.
        feeds = {name: np.ascontiguousarray(array) for name, array in feeds.items()}
        for name, array in feeds.items():
            binding.bind_cpu_input(name, array)
        binding.bind_output(LOGITS)
        for name, address in zip(self._present_names, cache.memory.addresses, strict=True):
            binding.bind_output(name, "cpu", 0, np.float32, cache.shape, address)
        self._session.run_with_iobinding(binding)
        logits = binding.get_outputs_as_ortvaluevector()[0].numpy()
        return HostLogits(logits[:, -1, :]), cache

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
            f"output {name} is missing"
            for name in (LOGITS, *self._present_names)
            if name not in outputs
        ]
        if problems:
            raise ModelLoadError(
                f"{GRAPH_FILE} is not a step graph with {self._config.layers} layers: "
                f"{'; '.join(problems)}"
            )
