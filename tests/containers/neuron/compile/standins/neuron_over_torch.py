"""What both packages share; see `README.md`."""

import importlib.util
import json
import os
from pathlib import Path

import torch

_RUNTIME = Path(__file__).resolve().parents[2] / "standins" / "neuron_runtime.py"
LIBRARY = torch.library.Library("neuron", "DEF")
_runtimes = []
# Something while a graph is recorded, which takes no device.
_tracing = []


def on_device():
    """Whether this process is on an instance with devices."""
    return "NEURON_STANDIN_CORES" in os.environ


def _reserved_cores():
    if not on_device():
        raise RuntimeError("the graph needs a Neuron device: no such device was found")
    if not _runtimes:
        # By its path: beside it lies a package in the place of torch.
        spec = importlib.util.spec_from_file_location("neuron_runtime", _RUNTIME)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _runtimes.append(module.Runtime())
    return int(_runtimes[0].reserve())


def _forward(first, rows, columns, cores):
    if list(first.shape) != [rows, columns]:
        raise RuntimeError(f"the graph takes [{rows}, {columns}], not {list(first.shape)}")
    if _tracing:
        return first.clone()
    reserved = _reserved_cores()
    if cores > reserved:
        raise RuntimeError(f"the graph needs {cores} NeuronCores, and {reserved} are reserved")
    return first.clone()


def add_operator(name):
    LIBRARY.define(f"{name}(Tensor first, int rows, int columns, int cores) -> Tensor")
    LIBRARY.impl(name, _forward, "CPU")


class _Locked(torch.nn.Module):
    def __init__(self, inner, operator, shape, cores):
        super().__init__()
        self.inner, self.operator, self.shape, self.cores = inner, operator, shape, cores

    def forward(self, first, *others):
        return self.inner(self.operator(first, *self.shape, self.cores), *others)


def graph(model, example, operator, cores):
    inner = torch.jit.trace(model, example, check_trace=False)
    rows, columns = example[0].shape
    packet = getattr(torch.ops.neuron, operator)
    locked = _Locked(inner, packet, (int(rows), int(columns)), cores)
    _tracing.append(True)
    try:
        return torch.jit.trace(locked, example, check_trace=False)
    finally:
        _tracing.clear()


def parsed(arguments, allowed):
    """Returns options with their values, as the compilers' command lines read them."""
    if isinstance(arguments, str) or len(arguments) % 2:
        raise RuntimeError(f"the compiler cannot read its arguments: {arguments}")
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    for name, value in options.items():
        values = allowed.get(name, ())
        if values is not None and value not in values:
            raise RuntimeError(f"the compiler does not know {name} {value}")
    return options


def record(package, example, arguments):
    """Writes down what a compiler was asked for, where a test wants to know."""
    path = os.environ.get("NEURON_STANDIN_RECORD")
    if path is not None:
        with Path(path).open("a") as file:
            shapes = [list(each.shape) for each in example]
            file.write(json.dumps([package, shapes, list(arguments)]) + "\n")
