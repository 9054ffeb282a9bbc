"""The building half of the stand-in for `tensorrt`: a graph, and layers that are added to it.

Added layers are computed with NumPy, by the rules of a strongly typed network.
"""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

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
        return SimpleNamespace(
            shapes=shapes, set_shape=lambda name, *sizes: shapes.update({name: list(sizes)})
        )

    def build_serialized_network(self, network, config):
        if message := self._owner.refusals.get("build_serialized_network"):
            self._log.log(ILogger.Severity.ERROR, message)
            return None
        return plan_of(network.graph, config.profiles, network.tensors, network.layers)


def plan_of(graph, profiles, tensors, layers=()):
    by_name = {each.name: each for each in tensors}
    return pickle.dumps(
        {"graph": graph, "profiles": profiles, "tensors": by_name, "layers": list(layers)}
    )


@dataclass
class Layer:
    """A layer that was added to the graph."""

    compute: Callable[..., Any]
    inputs: list[Tensor]
    outputs: list[Tensor]

    def get_output(self, index):
        return self.outputs[index]


class Network:
    def __init__(self):
        self.graph = ""
        self.tensors = []
        self.layers = []

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
        return self._add(partial(_cast, dtype), [tensor], (dtype, tensor.shape))

    def add_topk(self, tensor, operation, count, axes):
        shape = (*tensor.shape[:2], count)
        assert (operation, axes) == (TopKOperation.MAX, 1 << 2)
        kinds = (tensor.dtype, shape), (DataType.INT32, shape)
        return self._add(partial(_top, count), [tensor], *kinds)

    def add_reduce(self, tensor, operation, axes, keep_dims):
        assert keep_dims
        assert axes == 1 << 2
        function = {"MAX": np.max, "SUM": np.sum}[operation.name]
        compute = partial(function, axis=-1, keepdims=True)
        return self._add(compute, [tensor], (tensor.dtype, (*tensor.shape[:2], 1)))

    def add_elementwise(self, first, second, operation):
        if first.dtype is not second.dtype:
            raise ContractError(f"{first.dtype.name} and {second.dtype.name} in one operation")
        function = {"SUB": np.subtract, "DIV": np.divide}[operation.name]
        return self._add(function, [first, second], (first.dtype, first.shape))

    def add_unary(self, tensor, operation):
        if tensor.dtype not in (DataType.FLOAT, DataType.HALF):
            raise ContractError(f"{operation.name} of {tensor.dtype.name}")
        return self._add({"EXP": np.exp}[operation.name], [tensor], (tensor.dtype, tensor.shape))

    def _add(self, compute, inputs, *outputs):
        first = sum(len(layer.outputs) for layer in self.layers)
        made = [
            Tensor(f"added.{first + index}", shape, dtype, TensorIOMode.NONE)
            for index, (dtype, shape) in enumerate(outputs)
        ]
        self.layers.append(Layer(compute, inputs, made))
        return self.layers[-1]


def _cast(dtype, array):
    return array.astype(NUMPY_TYPES[dtype])


def _top(count, array):
    # TensorRT promises no order of equal values. Here the highest index comes first.
    order = np.flip(np.argsort(array, axis=-1, kind="stable"), axis=-1)[..., :count]
    return np.take_along_axis(array, order, axis=-1), order.astype(np.int32)


def computed(layers, values):
    """The values, and what added layers put out, by name."""
    known = dict(values)
    for layer in layers:
        results = layer.compute(*(known[each.name] for each in layer.inputs))
        results = results if isinstance(results, tuple) else (results,)
        known |= dict(zip((each.name for each in layer.outputs), results, strict=True))
    return known


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
        for mode, items in (
            (TensorIOMode.INPUT, session.get_inputs()),
            (TensorIOMode.OUTPUT, session.get_outputs()),
        ):
            for item in items:
                shape = tuple(size if isinstance(size, int) else -1 for size in item.shape)
                self._network.tensors.append(Tensor(item.name, shape, types[item.type], mode))
        return True


class BuilderConfig:
    def __init__(self):
        self.profiles = []
        self.timing_cache = b""

    def add_optimization_profile(self, profile):
        self.profiles.append(profile.shapes)
        return len(self.profiles) - 1

    def create_timing_cache(self, content):
        return SimpleNamespace(serialize=lambda: content)

    def set_timing_cache(self, cache, ignore_mismatch):
        assert not ignore_mismatch
        self.timing_cache = cache.serialize()
        return True

    def get_timing_cache(self):
        return SimpleNamespace(serialize=lambda: self.timing_cache)
