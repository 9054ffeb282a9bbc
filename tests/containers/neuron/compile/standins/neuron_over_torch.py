"""What both packages share; see `README.md`."""

import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

_RUNTIME = Path(__file__).resolve().parents[2] / "standins" / "neuron_runtime.py"
LIBRARY = torch.library.Library("neuron", "DEF")
_runtimes: list[Any] = []
# Something while a graph is recorded, which takes no device.
_tracing: list[bool] = []


def on_device() -> bool:
    """Whether this process is on an instance with devices."""
    return "NEURON_STANDIN_CORES" in os.environ


def _reserved_cores() -> int:
    if not on_device():
        raise RuntimeError("the graph needs a Neuron device: no such device was found")
    if not _runtimes:
        # By its path: beside it lies a package in the place of torch.
        spec = importlib.util.spec_from_file_location("neuron_runtime", _RUNTIME)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _runtimes.append(module.Runtime())
    return int(_runtimes[0].reserve())


def _forward(first: torch.Tensor, rows: int, columns: int, cores: int) -> torch.Tensor:
    if list(first.shape) != [rows, columns]:
        raise RuntimeError(f"the graph takes [{rows}, {columns}], not {list(first.shape)}")
    if _tracing:
        return first.clone()
    reserved = _reserved_cores()
    if cores > reserved:
        raise RuntimeError(f"the graph needs {cores} NeuronCores, and {reserved} are reserved")
    return first.clone()


def add_operator(name: str) -> None:
    LIBRARY.define(f"{name}(Tensor first, int rows, int columns, int cores) -> Tensor")
    LIBRARY.impl(name, _forward, "CPU")


class _Locked(torch.nn.Module):
    def __init__(self, inner: Any, operator: Any, shape: Sequence[int], cores: int) -> None:
        super().__init__()
        self.inner, self.operator, self.shape, self.cores = inner, operator, shape, cores

    def forward(self, first: torch.Tensor, *others: torch.Tensor) -> Any:
        return self.inner(self.operator(first, *self.shape, self.cores), *others)


def graph(model: Any, example: tuple[torch.Tensor, ...], operator: str, cores: int) -> Any:
    """Returns the trace of a model behind the operator."""
    inner = torch.jit.trace(model, example, check_trace=False)
    rows, columns = example[0].shape
    packet = getattr(torch.ops.neuron, operator)
    locked = _Locked(inner, packet, (int(rows), int(columns)), cores)
    _tracing.append(True)
    try:
        return torch.jit.trace(locked, example, check_trace=False)
    finally:
        _tracing.clear()


def parsed(arguments: Sequence[str], allowed: Mapping[str, Sequence[str] | None]) -> dict[str, str]:
    """Returns options with their values, as the compilers' command lines read them."""
    if isinstance(arguments, str) or len(arguments) % 2:
        raise RuntimeError(f"the compiler cannot read its arguments: {arguments}")
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    for name, value in options.items():
        values = allowed.get(name, ())
        if values is not None and value not in values:
            raise RuntimeError(f"the compiler does not know {name} {value}")
    return options


def record(package: str, example: tuple[torch.Tensor, ...], arguments: Sequence[str]) -> None:
    """Writes down what a compiler was asked for, where a test wants to know."""
    path = os.environ.get("NEURON_STANDIN_RECORD")
    if path is not None:
        with Path(path).open("a") as file:
            shapes = [list(each.shape) for each in example]
            file.write(json.dumps([package, shapes, list(arguments)]) + "\n")
