"""The child process of a compile job: everything that needs torch, or a compiler.

    python -m containers.neuron.compile.worker ORDER SCRATCH

It writes a whole model directory into the scratch directory, and elsewhere only the reason of a
failure. It keeps to Python 3.10; see the package.
"""

import importlib.metadata
import importlib.util
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from containers.encoders.manifest import (
    CPU,
    RUNTIME_PACKAGES,
    TASK_OUTPUTS,
    Manifest,
    write_manifest,
)
from containers.jobs.child import run_process, run_work
from containers.jobs.report import CompileError, stage
from containers.neuron.compile.job import WorkerCommand
from containers.serving.logs import log_info
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE

if TYPE_CHECKING:
    from containers.encoders.compile.modules import EncoderModule

_ONNX_FILE: Final = "model.onnx"
_CHECK_THREADS: Final = 1
# An ONNX graph is a protobuf message, which cannot be larger.
_LARGEST_ONNX_BYTES: Final = 2**31
# Package -> the module that it is imported as; packages that only a compiler needs have none.
_MODULES: Final = {
    "torch": "torch",
    "transformers": "transformers",
    "safetensors": "safetensors",
    "onnx": "onnx",
    "onnx-ir": "onnx_ir",
    "onnxscript": "onnxscript",
    "onnxruntime": "onnxruntime",
    "torch-neuron": "torch_neuron",
    "torch-neuronx": "torch_neuronx",
    "tensorflow": "tensorflow",
}
_ALWAYS: Final = ("torch", "transformers", "safetensors")
# Runtime -> packages that are needed to make its graphs, but not to run them. torch_neuron passes
# TensorFlow graphs to neuron-cc.
_MAKERS: Final[Mapping[str, tuple[str, ...]]] = {
    "onnxruntime": ("onnx", "onnx-ir", "onnxscript", "onnxruntime"),
    "torch_neuron": ("tensorflow",),
}


def compile_order(order: WorkerCommand, scratch: Path) -> None:
    """Writes the model directory of a checkpoint.

    Raises `CompileError` if the checkpoint or this Python is not suitable.
    """
    with stage("import_packages") as fields:
        versions = _versions(order)
        # Imported here, so that a missing package is reported without a traceback.
        from containers.encoders.compile import modules
        from containers.neuron.compile.compilers import compiler_arguments

        modules.quieten()
        fields["versions"] = versions
    with stage("load_checkpoint") as fields:
        model = modules.load_model(
            order.checkpoint, order.model_class, order.task, eager=order.target != CPU
        )
        fields["parameters"] = sum(weights.numel() for weights in model.parameters())
    inputs = modules.input_names(model)
    module = modules.EncoderModule(model, order.task, inputs).eval()
    with stage("write_configs"):
        for name in (CONFIG_FILE, TOKENIZER_FILE):
            shutil.copyfile(order.checkpoint / name, scratch / name)
    if order.runtime == "onnxruntime":
        graphs = _export(module, order, scratch)
    else:
        graphs = _compile_buckets(module, inputs, order, scratch)
    manifest = Manifest(
        task=order.task,
        target=order.target,
        runtime=order.runtime,
        batch_size=order.batch_size,
        pipeline_cores=order.pipeline_cores,
        dtype=order.dtype,
        graphs=graphs,
        inputs=inputs,
        outputs=TASK_OUTPUTS[order.task],
        pooling=order.pooling,
        normalize=order.normalize,
        versions=versions,
        compiler_arguments=compiler_arguments(order),
    )
    if order.target == CPU:
        from containers.encoders.compile.parity import check_session
        from containers.neuron.runtimes.selection import open_session

        # With the session that will serve them.
        session = open_session(scratch, manifest, threads=_CHECK_THREADS)
        check_session(session, module, manifest, order)
    else:
        log_info(
            "graphs_not_run",
            message=f"graphs for {order.target} run on its devices alone: what was checked here is "
            "that the traced module computes what the model does, before it was compiled",
        )
    write_manifest(manifest, scratch)


def _export(module: "EncoderModule", order: WorkerCommand, scratch: Path) -> Mapping[int, str]:
    from containers.encoders.compile.modules import export_onnx

    weight_bytes = sum(4 * weights.numel() for weights in module.model.parameters())
    if weight_bytes >= _LARGEST_ONNX_BYTES:
        raise CompileError(
            f"the model has {weight_bytes} bytes of weights, and an ONNX graph less than "
            f"{_LARGEST_ONNX_BYTES}: compile it with the hyperparameter runtime=torchscript"
        )
    with stage("export_graph") as fields:
        export_onnx(module.model, order.task, scratch / _ONNX_FILE)
        fields["bytes"] = {_ONNX_FILE: (scratch / _ONNX_FILE).stat().st_size}
    return dict.fromkeys(order.sequence_lengths, _ONNX_FILE)


def _compile_buckets(
    module: "EncoderModule", inputs: tuple[str, ...], order: WorkerCommand, scratch: Path
) -> Mapping[int, str]:
    from containers.neuron.compile.compilers import compiled, compiler_arguments

    if order.target != CPU:
        _check_traces(module, inputs, order)
    graphs = {}
    for number, tokens in enumerate(order.sequence_lengths, 1):
        bucket = f"{number} of {len(order.sequence_lengths)}"
        with stage("compile_graph", sequence_length=tokens, bucket=bucket) as fields:
            graphs[tokens] = f"model-{tokens}.pt"
            path = scratch / graphs[tokens]
            compiled(module, inputs, order, tokens).save(str(path))
            fields["bytes"] = {path.name: path.stat().st_size}
            fields["compiler_arguments"] = compiler_arguments(order)
    return graphs


def _check_traces(module: "EncoderModule", inputs: tuple[str, ...], order: WorkerCommand) -> None:
    """Checks what a trace records of the module, in seconds and before the minutes of a compiler.

    A branch that depends on the example, or a lost mask, shows in every trace alike.
    """
    import torch

    from containers.encoders.compile.modules import example_inputs
    from containers.encoders.compile.parity import check_graph
    from containers.neuron.compile.compilers import cpu_trace

    for tokens in order.sequence_lengths:
        with stage("verify_trace", sequence_length=tokens) as fields:
            graph = cpu_trace(module, example_inputs(inputs, rows=order.batch_size, columns=tokens))

            # Any: float32.
            def run(arrays: dict[str, Any], graph: Any = graph) -> tuple[Any, ...]:
                with torch.no_grad():
                    computed = graph(*(torch.from_numpy(arrays[name]) for name in inputs))
                return tuple(each.numpy() for each in computed)

            parity = check_graph(run, module, inputs, order, tokens)
            fields["values_compared"] = parity.values
            fields["largest_difference"] = parity.largest_difference


def _versions(order: WorkerCommand) -> Mapping[str, str]:
    """Returns the versions of the packages that make the graphs; missing ones are an error."""
    required, compilers = RUNTIME_PACKAGES[order.runtime]
    makers = _MAKERS.get(order.runtime, ())
    versions: dict[str, str] = {}
    missing = []
    for name in dict.fromkeys((*_ALWAYS, *makers, *required, *compilers)):
        try:
            if name in _MODULES and importlib.util.find_spec(_MODULES[name]) is None:
                raise importlib.metadata.PackageNotFoundError(name)
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        elsewhere = (
            "; for the embedded AWS, `make export` installs them"
            if order.target == CPU
            else f": it is the one for {order.target}"
        )
        raise CompileError(
            f"compiling for {order.target} needs {', '.join(missing)}: run the job in the compiler "
            f"image{elsewhere}"
        )
    return versions


if __name__ == "__main__":
    order, scratch = WorkerCommand.from_json(sys.argv[1]), Path(sys.argv[2])
    work = partial(compile_order, order, scratch)
    run_process(lambda: run_work(work, scratch=scratch, output_dir=order.output))
