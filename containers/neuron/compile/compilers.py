"""Compiles a module for one shape into a graph of TorchScript, for Neuron devices or the CPU.

Imports torch, and torch_neuron or torch_neuronx when a graph is compiled for them; it keeps to
Python 3.10.

Sources, AWS's documentation at https://awsdocs-neuron.readthedocs-hosted.com/en/latest/:

- `torch_neuron.trace(model, example_inputs, compiler_args=...)`:
  archive/torch-neuron/api-compilation-python-api.html
- `torch_neuronx.trace(func, example_inputs, compiler_args=..., cpu_backend=...)`:
  frameworks/torch/torch-neuronx/api-reference-guide/inference/api-torch-neuronx-trace.html
- `neuron-cc compile`: compiler/neuron-cc/command-line-reference.html
- `neuronx-cc compile`: compiler/neuronx-cc/api-reference-guide/index.html
"""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any, Final

import torch

from containers.encoders.compile.modules import EncoderModule, example_inputs
from containers.jobs.report import CompileError
from containers.neuron.compile.job import WorkerCommand
from containers.serving.logs import log_error

# neuron-cc has no float32: `--fast-math none`, its most accurate, casts products to bf16 too.
_NEURON_CC_CASTS: Final = {"bf16": "matmult-bf16", "fp16": "matmult-fp16"}
# Name of a compiled graph's operators that run on a device.
_NEURON_OPERATOR: Final = "neuron::"


def compiler_arguments(order: WorkerCommand) -> tuple[str, ...]:
    """Returns the arguments of the target's compiler; none for the CPU.

    Only matrix products are cast. Sums, softmax and the mask's large negative numbers stay in
    float32, which makes a graph in fp16 safe.
    """
    if order.runtime == "torch_neuron":
        arguments = ["--fp32-cast", _NEURON_CC_CASTS[order.dtype]]
        if order.pipeline_cores > 1:
            arguments += ["--neuroncore-pipeline-cores", str(order.pipeline_cores)]
        return tuple(arguments)
    if order.runtime == "torch_neuronx":
        cast = ["none"] if order.dtype == "fp32" else ["matmult", "--auto-cast-type", order.dtype]
        return ("--target", order.target, "--model-type", "transformer", "--auto-cast", *cast)
    return ()


# Any: a ScriptModule, whatever torch calls it.
def compiled(
    module: EncoderModule, inputs: tuple[str, ...], order: WorkerCommand, tokens: int
) -> Any:
    """Compiles a module for a batch of the order's rows and `tokens` columns.

    Raises `CompileError` if the compiler fails, or leaves the whole module to the CPU.
    """
    example = example_inputs(inputs, rows=order.batch_size, columns=tokens)
    if order.runtime == "torchscript":
        return cpu_trace(module, example)
    try:
        graph = _compiled(module, example, order)
    except MemoryError:
        raise
    # It is not documented which exceptions the frameworks and their compilers raise.
    except Exception as error:
        log_error("compiler_failed", error=error, sequence_length=tokens)
        raise CompileError(
            f"{order.runtime} cannot compile {order.model_class} for {order.batch_size} x {tokens} "
            f"tokens: {type(error).__name__}: {error}; the job's log has what its compiler wrote"
        ) from error
    # Operators that the compiler does not know stay on the CPU. If no operator is left for the
    # device, the compiler only warns.
    if _NEURON_OPERATOR not in str(graph.inlined_graph):
        raise CompileError(
            f"{order.runtime} compiled nothing of {order.model_class} for {order.target}: it would "
            "all run on the processor; the job's log has what it wrote"
        )
    return graph


def cpu_trace(module: EncoderModule, example: tuple[torch.Tensor, ...]) -> Any:
    with _tracing():
        # The trace is compared with the model itself afterwards, so torch need not compare two
        # traces.
        return torch.jit.trace(module, example, check_trace=False)


@contextlib.contextmanager
def _tracing() -> Iterator[None]:
    with warnings.catch_warnings(), torch.no_grad():
        # torch warns of branches that a trace fixes; the check of the trace shows which matter.
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        yield


def _compiled(
    module: EncoderModule, example: tuple[torch.Tensor, ...], order: WorkerCommand
) -> Any:
    arguments = list(compiler_arguments(order))
    with _tracing():
        if order.runtime == "torch_neuron":
            import torch_neuron

            return torch_neuron.trace(module, example, compiler_args=arguments)
        import torch_neuronx

        # There is no device here: operators are recorded on the CPU and compiled for the
        # `--target`.
        return torch_neuronx.trace(module, example, compiler_args=arguments, cpu_backend=True)
