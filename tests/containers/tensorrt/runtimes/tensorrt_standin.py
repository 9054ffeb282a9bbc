"""A stand-in for `tensorrt`: engines that ONNX Runtime computes, with TensorRT's rules kept.

Its engine files have the engine's tensors and profiles, and the graph to compute. What an execution
context may not do raises `ContractError`; what TensorRT itself refuses at run time can be asked for
with `refusals`.
"""

import itertools
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime

from tests.containers.tensorrt.runtimes import tensorrt_building, tensorrt_types
from tests.containers.tensorrt.runtimes.cuda_standin import ContractError
from tests.containers.tensorrt.runtimes.tensorrt_types import (
    NUMPY_TYPES,
    DataType,
    ILogger,
    TensorIOMode,
)

VERSION = "10.13.3.9"
_ALIGNMENT = 256


class TensorRTStandIn:
    """What `import tensorrt` gives; `NAME(...)` of the API is the attribute of that name.

    `float_type` is of cache and logits. Where the graph itself is float32, an engine of half
    precision rounds what it takes and what it gives. Without `compute`, which gives all outputs of
    all inputs, the graph is computed.
    """

    __version__ = VERSION

    def __init__(self, cuda, *, compute=None):
        self.cuda = cuda
        self.float_type = DataType.HALF
        self.context_bytes = 1 << 16
        self.logits_of_every_position = False
        # What a call refuses with: its name and the message in the log.
        self.refusals = {}
        self._compute = compute
        self._graphs = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(tensorrt_types, name)

    def compute(self, graph, inputs):
        if self._compute is not None:
            return self._compute(inputs)
        if graph not in self._graphs:
            self._graphs[graph] = onnxruntime.InferenceSession(
                graph, providers=["CPUExecutionProvider"]
            )
        session = self._graphs[graph]
        names = [item.name for item in session.get_outputs()]
        types = {item.name: item.type for item in session.get_inputs()}
        feeds = {
            name: array.astype(np.float32) if types[name] == "tensor(float)" else array
            for name, array in inputs.items()
        }
        return dict(zip(names, session.run(names, feeds), strict=True))

    # Building.

    def Builder(self, log: ILogger) -> Any:  # noqa: N802
        return tensorrt_building.Builder(self, log)

    def OnnxParser(self, network: Any, log: ILogger) -> Any:  # noqa: N802
        return tensorrt_building.Parser(self, network, log)

    # Running.

    def Runtime(self, log: ILogger) -> Any:  # noqa: N802
        return SimpleNamespace(
            deserialize_cuda_engine=lambda plan: self._deserialise(bytes(plan), log)
        )

    def _deserialise(self, plan, log):
        try:
            document = pickle.loads(plan)  # noqa: S301  (our own)
        except Exception:
            log.log(ILogger.Severity.ERROR, "IRuntime::deserializeCudaEngine: magicTag mismatch")
            return None
        return Engine(self, document, log)


class Engine:
    def __init__(self, owner, document, log):
        self.owner = owner
        self.log = log
        self.graph, self.layers = document["graph"], document["layers"]
        self.profiles, self.tensors = document["profiles"], document["tensors"]
        self.contexts = []
        self.num_io_tensors = len(self.tensors)
        self.num_optimization_profiles = len(self.profiles)
        self.device_memory_size_v2 = owner.context_bytes

    def get_tensor_name(self, index):
        return list(self.tensors)[index]

    def __getattr__(self, name):
        """Answers `get_tensor_mode` and the like, which take the name of a tensor."""
        field = name.removeprefix("get_tensor_")
        return lambda tensor: getattr(self.tensors[tensor], field)

    def get_tensor_profile_shape(self, name, profile_index):
        return [tuple(shape) for shape in self.profiles[profile_index][name]]

    def create_execution_context(self):
        if message := self.owner.refusals.get("create_execution_context"):
            self.log.log(ILogger.Severity.ERROR, message)
            return None
        assert self.owner.cuda.reserve(self.owner.context_bytes)
        self.contexts.append(Context(self))
        return self.contexts[-1]


class Context:
    def __init__(self, engine):
        self._engine = engine
        self._profile = None
        self._shapes = {}
        self._addresses = {}

    def set_optimization_profile_async(self, profile_index, stream_handle):
        if any(each._profile == profile_index for each in self._engine.contexts):
            raise ContractError(f"profile {profile_index} is another context's")
        self._profile = profile_index
        self._shapes = {}
        self._engine.owner.cuda.enqueue(stream_handle, lambda: None)
        return self._accepts("set_optimization_profile_async")

    def set_input_shape(self, name, shape):
        if self._engine.get_tensor_mode(name) is not TensorIOMode.INPUT:
            raise ContractError(f"{name} is not an input")
        if type(shape) is not tuple or not all(type(size) is int for size in shape):
            raise ContractError(f"a shape is a tuple of int, not {shape!r}")
        if self._profile is None:
            raise ContractError("no optimisation profile was chosen")
        least, _, most = self._engine.get_tensor_profile_shape(name, self._profile)
        if not all(low <= size <= high for low, size, high in zip(least, shape, most, strict=True)):
            raise ContractError(
                f"{name} of {shape} is outside profile {self._profile}: {least} to {most}"
            )
        self._shapes[name] = shape
        return self._accepts("set_input_shape")

    def set_tensor_address(self, name, memory):
        assert name in self._engine.tensors
        if type(memory) is not int:
            raise ContractError(f"an address is a number, not {memory!r}")
        if memory % _ALIGNMENT:
            raise ContractError(f"{memory:#x}, where {name} is, is not aligned to {_ALIGNMENT}")
        self._addresses[name] = memory
        return self._accepts("set_tensor_address")

    def get_tensor_shape(self, name):
        tensor = self._engine.tensors[name]
        if tensor.mode is TensorIOMode.INPUT:
            return self._shape_of_input(name)
        rows, sequence = self._shape_of_input("input_ids")
        if not any(each.startswith("past_key_values") for each in self._engine.tensors) and (
            len(tensor.shape) == 2 or name == "token_vectors"
        ):
            # An encoder's: a number for each token, or for each label of a text.
            columns = {0: rows, 1: sequence}
            return tuple(
                columns.get(axis, size) if size < 0 else size
                for axis, size in enumerate(tensor.shape)
            )
        if name in ("candidate_tokens", "candidate_logits", "total_weights"):
            return (rows, 1, tensor.shape[2])
        if name == "logits":
            positions = sequence if self._engine.owner.logits_of_every_position else 1
            return (rows, positions, tensor.shape[2])
        if name.startswith("cross_key_values"):
            # Of the encoder's texts.
            return (rows, tensor.shape[1], sequence, tensor.shape[3])
        past = self._shape_of_input(name.replace("present", "past_key_values"))
        return (rows, past[1], past[2] + sequence, past[3])

    def execute_async_v3(self, stream_handle):
        if type(stream_handle) is not int:
            raise ContractError(f"a stream is a number here, not {stream_handle!r}")
        buffers = {name: self._buffer(name) for name in self._engine.tensors}
        self._check_sizes()
        self._check_places(buffers)
        if not self._accepts("execute_async_v3"):
            return False
        self._engine.owner.cuda.enqueue(stream_handle, lambda: self._execute(buffers))
        return True

    def _accepts(self, call):
        message = self._engine.owner.refusals.get(call)
        if message is not None:
            self._engine.log.log(ILogger.Severity.ERROR, message)
        return message is None

    def _shape_of_input(self, name):
        if name not in self._shapes:
            raise ContractError(f"{name} has no shape")
        return self._shapes[name]

    def _buffer(self, name):
        """A view of the tensor's memory; an empty one has a byte all the same."""
        if name not in self._addresses:
            raise ContractError(f"{name} has no address")
        dtype = NUMPY_TYPES[self._engine.get_tensor_dtype(name)]
        shape = self.get_tensor_shape(name)
        size_bytes = int(np.prod(shape)) * dtype.itemsize
        content = self._engine.owner.cuda.memory(self._addresses[name], max(size_bytes, 1))
        return content[:size_bytes].view(dtype).reshape(shape)

    def _check_sizes(self):
        rows, sequence = self._shape_of_input("input_ids")
        past, cross = (
            {shape[2] for name, shape in self._shapes.items() if name.startswith(prefix)}
            for prefix in ("past", "cross")
        )
        if len(past) > 1 or len(cross) > 1:
            raise ContractError(f"past of {past} columns, texts of {cross}")
        if cross:
            mask, expected = "encoder_attention_mask", cross.pop()
        else:
            mask, expected = "attention_mask", sum(past) + sequence
        if (columns := self._shape_of_input(mask)[1]) != expected:
            raise ContractError(f"a mask of {columns} columns, and not of {expected}")
        if {shape[0] for shape in self._shapes.values()} != {rows}:
            raise ContractError(f"batches of different sizes: {self._shapes}")

    def _check_places(self, buffers):
        places = sorted(
            (self._addresses[name], self._addresses[name] + max(buffer.nbytes, 1), name)
            for name, buffer in buffers.items()
        )
        for (_, end, name), (start, _, next_name) in itertools.pairwise(places):
            if start < end:
                raise ContractError(f"{name} and {next_name} overlap")

    def _execute(self, buffers):
        engine = self._engine
        inputs = {
            name: buffer.copy()
            for name, buffer in buffers.items()
            if engine.get_tensor_mode(name) is TensorIOMode.INPUT
        }
        # The graph knows nothing of the inputs of added layers.
        added = {name: inputs.pop(name) for name in list(inputs) if name == "temperatures"}
        for name, array in engine.owner.compute(engine.graph, inputs).items():
            with np.errstate(over="ignore"):
                np.copyto(buffers[name], array, casting="same_kind")
        for name, array in tensorrt_building.computed(engine.layers, {**buffers, **added}).items():
            if name in buffers:
                np.copyto(buffers[name], array, casting="no")
