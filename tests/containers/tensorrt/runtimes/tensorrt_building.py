"""The building half of the stand-in for `tensorrt`: a graph, and layers that are added to it.

Added layers are computed with NumPy, by the rules of a strongly typed network.
"""

import json
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import onnxruntime

from tests.containers.tensorrt.runtimes.cuda_standin import ContractError
from tests.containers.tensorrt.runtimes.tensorrt_types import (
    NUMPY_TYPES,
    DataType,
    ILogger,
    NetworkDefinitionCreationFlag,
    Tensor,
    TensorIOMode,
    TopKOperation,
)


class Builder:
    def __init__(self, owner, log):
        self._owner = owner
        self._log = log

    def create_network(self, flags):
        assert flags == 1 << int(NetworkDefinitionCreationFlag.STRONGLY_TYPED)
        return Network()

    def create_builder_config(self):
        return BuilderConfig()

    def create_optimization_profile(self):
        shapes = {}

        def set_shape(name, *sizes):
            shapes[name] = [list(size) for size in sizes]

        return SimpleNamespace(shapes=shapes, set_shape=set_shape)

    def build_serialized_network(self, network, config):
        if message := self._owner.refusals.get("build_serialized_network"):
            self._log.log(ILogger.Severity.ERROR, message)
            return None
        document = {
            "graph": network.graph,
            "layers": network.layers(),
            "profiles": [profile.shapes for profile in config.profiles],
            "tensors": [
                {
                    "name": each.name,
                    "shape": each.shape,
                    "dtype": each.dtype.name,
                    "mode": each.mode.name,
                    "location": each.location.name,
                }
                for each in network.tensors
            ],
        }
        return json.dumps(document).encode()


class Network:
    def __init__(self):
        self.graph = ""
        self.tensors = []
        self._layers = []

    def _of(self, mode):
        return [each for each in self.tensors if each.mode is mode]

    @property
    def num_inputs(self):
        return len(self._of(TensorIOMode.INPUT))

    def get_input(self, index):
        return self._of(TensorIOMode.INPUT)[index]

    @property
    def num_outputs(self):
        return len(self._of(TensorIOMode.OUTPUT))

    def get_output(self, index):
        return self._of(TensorIOMode.OUTPUT)[index]

    def add_input(self, name, dtype, shape):
        self.tensors.append(Tensor(name, shape, dtype, TensorIOMode.INPUT))
        return self.tensors[-1]

    def mark_output(self, tensor):
        tensor.mode = TensorIOMode.OUTPUT
        self.tensors.append(tensor)

    def add_cast(self, tensor, dtype):
        return self._add("cast", [tensor], [(dtype, tensor.shape)], dtype.name)

    def add_topk(self, tensor, operation, count, axes):
        shape = (*tensor.shape[:2], count)
        kinds = [(tensor.dtype, shape), (DataType.INT32, shape)]
        assert (operation, axes) == (TopKOperation.MAX, 1 << 2)
        return self._add("topk", [tensor], kinds, str(count))

    def add_reduce(self, tensor, operation, axes, keep_dims):
        assert keep_dims
        assert axes == 1 << 2
        return self._add("reduce", [tensor], [(tensor.dtype, (*tensor.shape[:2], 1))], operation)

    def add_elementwise(self, first, second, operation):
        if first.dtype is not second.dtype:
            raise ContractError(f"{first.dtype.name} and {second.dtype.name} in one operation")
        return self._add("elementwise", [first, second], [(first.dtype, first.shape)], operation)

    def add_unary(self, tensor, operation):
        if tensor.dtype not in (DataType.FLOAT, DataType.HALF):
            raise ContractError(f"{operation.name} of {tensor.dtype.name}")
        return self._add("unary", [tensor], [(tensor.dtype, tensor.shape)], operation)

    def _add(self, kind, inputs, outputs, argument):
        first = sum(len(layer.outputs) for layer in self._layers)
        made = [
            Tensor(f"added.{first + index}", shape, dtype, TensorIOMode.NONE)
            for index, (dtype, shape) in enumerate(outputs)
        ]
        text = argument if isinstance(argument, str) else argument.name
        self._layers.append(Layer(kind, inputs, made, text))
        return self._layers[-1]

    def layers(self):
        """What was added to the graph, for the plan."""
        return [
            {
                "kind": layer.kind,
                "argument": layer.argument,
                "inputs": [each.name for each in layer.inputs],
                "outputs": [each.name for each in layer.outputs],
            }
            for layer in self._layers
        ]


@dataclass
class Layer:
    """A layer that was added to the graph; `argument` is its operation, type or count."""

    kind: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    argument: str

    def get_output(self, index):
        return self.outputs[index]


def computed(layers, values):
    """What added layers put out, by name."""
    known = dict(values)
    for layer in layers:
        inputs = [known[name] for name in layer["inputs"]]
        results = _COMPUTE[layer["kind"]](layer["argument"], *inputs)
        known |= dict(zip(layer["outputs"], results, strict=True))
    return {name: known[name] for layer in layers for name in layer["outputs"]}


def _top(count, array):
    # TensorRT promises no order of equal values. Here the highest index comes first.
    order = np.flip(np.argsort(array, axis=-1, kind="stable"), axis=-1)[..., : int(count)]
    return [np.take_along_axis(array, order, axis=-1), order.astype(np.int32)]


_COMPUTE = {
    "cast": lambda name, array: [array.astype(NUMPY_TYPES[DataType[name]])],
    "topk": _top,
    "reduce": lambda name, array: [
        {"MAX": np.max, "SUM": np.sum}[name](array, axis=-1, keepdims=True)
    ],
    "elementwise": lambda name, *arrays: [{"SUB": np.subtract, "DIV": np.divide}[name](*arrays)],
    "unary": lambda name, array: [{"EXP": np.exp}[name](array)],
}


class Parser:
    num_errors = 0

    def __init__(self, owner, network, log):
        self._owner = owner
        self._network = network
        self._log = log

    def parse_from_file(self, path):
        if message := self._owner.refusals.get("parse_from_file"):
            self._log.log(ILogger.Severity.ERROR, message)
            return False
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        types = {
            "tensor(int64)": DataType.INT64,
            "tensor(float)": self._owner.float_type,
            "tensor(float16)": DataType.HALF,
        }
        self._network.graph = path
        self._network.tensors = [
            Tensor(
                item.name,
                tuple(size if isinstance(size, int) else -1 for size in item.shape),
                types[item.type],
                mode,
            )
            for mode, items in (
                (TensorIOMode.INPUT, session.get_inputs()),
                (TensorIOMode.OUTPUT, session.get_outputs()),
            )
            for item in items
        ]
        return True


class BuilderConfig:
    def __init__(self):
        self.profiles = []
        self.timing_cache = b""

    def add_optimization_profile(self, profile):
        self.profiles.append(profile)
        return len(self.profiles) - 1

    def create_timing_cache(self, content):
        return SimpleNamespace(serialize=lambda: content)

    def set_timing_cache(self, cache, ignore_mismatch):
        assert not ignore_mismatch
        self.timing_cache = cache.serialize()
        return True

    def get_timing_cache(self):
        return SimpleNamespace(serialize=lambda: self.timing_cache)
