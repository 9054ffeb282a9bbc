"""The child process of a compile job of an encoder; see `worker`."""

import gc
import importlib.metadata
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

from containers.encoders.compile.checkpoint import Checkpoint
from containers.encoders.manifest import (
    CPU,
    ENCODER_FILE,
    TASK_OUTPUTS,
    TENSORRT,
    Manifest,
    write_manifest,
)
from containers.encoders.onnx_session import OnnxRuntimeSession
from containers.jobs.report import stage
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE
from containers.tensorrt.compile.encoder_accuracy import measure_accuracy
from containers.tensorrt.compile.encoder_job import Hyperparameters, prepare
from containers.tensorrt.compile.job import Job
from containers.tensorrt.compile.profiles import encoder_profiles
from containers.tensorrt.compile.stages import build_plans, run_worker, sizes, write_accuracy
from containers.tensorrt.engine_metadata import ENGINE_FILE, Gpu
from containers.tensorrt.model_directory import GRAPH_FILE

_PACKAGES: Final = ("torch", "transformers", "onnx")
_ONE_THREAD_A_CORE: Final = 0
# A share of the largest number, as for float32. Random RoBERTa and XLM-RoBERTa of six layers, with
# weights of a trained model's size, differed by at most 0.0021 in all tasks. Random models with
# weights ten times as large differ by up to 0.08, and are refused.
_HALF_TOLERANCE: Final = 3e-2


def compile_checkpoint(
    job: Job[Hyperparameters, Checkpoint], gpu: Gpu | None, scratch: Path
) -> None:
    """Writes the model directory of a checkpoint, with an engine if there is a GPU."""
    from containers.encoders.compile import model as torch_model
    from containers.encoders.compile.modules import EncoderModule, input_names
    from containers.encoders.compile.onnx_graph import trace_encoder
    from containers.encoders.compile.parity import TOLERANCE, check_session
    from containers.jobs.pretrained import check_finite
    from containers.tensorrt.export.graph_files import MODEL_TYPES, save_graph
    from containers.tensorrt.export.int8 import quantize_graph

    asked, checkpoint = job.hyperparameters, job.checkpoint
    is_half = asked.precision == "fp16"
    with stage("load_checkpoint") as fields:
        torch_model.quieten()
        model = torch_model.load_model(checkpoint.directory, checkpoint.model_class, asked.task)
        model = model.to(MODEL_TYPES[asked.precision])
        check_finite(model, f" in {asked.precision}")
        fields["checkpoint_bytes"] = checkpoint.weight_bytes
        fields["parameters"] = sum(weights.numel() for weights in model.parameters())
    with stage("write_configs"):
        for name in (CONFIG_FILE, TOKENIZER_FILE):
            shutil.copyfile(checkpoint.directory / name, scratch / name)
    with stage("export_graph") as fields:
        save_graph(trace_encoder(model, asked.task), scratch / GRAPH_FILE, {})
        graph_files = sorted(scratch.glob(f"{GRAPH_FILE}*"))
        fields["bytes"] = sizes(graph_files)
    inputs = input_names(model)
    manifest = Manifest(
        task=asked.task,
        target=CPU,
        runtime="onnxruntime",
        batch_size=asked.batch_size,
        pipeline_cores=1,
        dtype=asked.precision,
        graphs=dict.fromkeys(asked.sequence_lengths, GRAPH_FILE),
        inputs=inputs,
        outputs=TASK_OUTPUTS[asked.task],
        pooling=checkpoint.pooling,
        normalize=checkpoint.normalize,
        versions={name: importlib.metadata.version(name) for name in _PACKAGES},
    )
    session = OnnxRuntimeSession(scratch, manifest, threads=_ONE_THREAD_A_CORE)
    check_session(
        session,
        EncoderModule(model, asked.task, inputs).eval(),
        manifest,
        asked,
        _HALF_TOLERANCE if is_half else TOLERANCE,
    )
    if asked.dtype == "int8":
        with stage("quantize_graph") as fields:
            fields["products"] = quantize_graph(scratch / GRAPH_FILE)
            fields["bytes"] = sizes(scratch.glob(f"{GRAPH_FILE}*"))
        manifest = replace(manifest, dtype=asked.dtype)
        with stage("measure_accuracy") as fields:
            # The first session holds the graph from before.
            quantized = OnnxRuntimeSession(scratch, manifest, threads=_ONE_THREAD_A_CORE)
            fields |= measure_accuracy(session, quantized, manifest, scratch / TOKENIZER_FILE)
            write_accuracy(scratch, fields)
    if gpu is not None:
        # The builder holds all weights of the engine, and the model's copy is not needed any more.
        del model
        gc.collect()
        profiles = encoder_profiles(inputs, asked.batch_size, asked.sequence_lengths)
        version = build_plans(scratch, {ENGINE_FILE: (GRAPH_FILE, profiles)})
        for path in graph_files:
            path.unlink()
        manifest = replace(
            manifest,
            target=gpu.compute_capability,
            runtime=TENSORRT,
            graphs=dict.fromkeys(asked.sequence_lengths, ENGINE_FILE),
            versions={**manifest.versions, TENSORRT: version},
        )
    write_manifest(manifest, scratch, ENCODER_FILE)


if __name__ == "__main__":
    run_worker(prepare, compile_checkpoint)
