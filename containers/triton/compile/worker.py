"""The child process of a compile job: everything that needs torch, onnx or TensorRT.

It writes a whole model directory into the scratch directory, and elsewhere only the reason of a
failure.
"""

import gc
import shutil
from pathlib import Path

from containers.jobs.report import stage
from containers.serving.model_files import TOKENIZER_FILE
from containers.tensorrt.compile.job import Hyperparameters, Job
from containers.tensorrt.compile.stages import (
    build_engines,
    export_graphs,
    run_worker,
    write_configs,
)
from containers.tensorrt.engine_metadata import Gpu
from containers.triton.compile.checkpoint import Checkpoint, prepare
from containers.triton.engine_metadata import decoder_profiles, encoder_profiles
from containers.triton.model_directory import (
    DECODER_ENGINE,
    DECODER_GRAPH,
    ENCODER_ENGINE,
    ENCODER_GRAPH,
)


def compile_checkpoint(
    job: Job[Hyperparameters, Checkpoint], gpu: Gpu | None, scratch: Path
) -> None:
    """Writes the model directory of a checkpoint."""
    from containers.triton.compile import model as torch_model

    asked, checkpoint = job.hyperparameters, job.checkpoint
    with stage("load_checkpoint") as fields:
        model = torch_model.load_model(checkpoint, asked.precision)
        fields["checkpoint_bytes"] = checkpoint.weight_bytes
        fields["parameters"] = sum(weights.numel() for weights in model.parameters())
    with stage("write_configs"):
        write_configs(checkpoint, model, scratch)
        shutil.copyfile(checkpoint.directory / TOKENIZER_FILE, scratch / TOKENIZER_FILE)
    graph_files = export_graphs(
        scratch,
        "graphs",
        lambda: torch_model.export_graphs(model, scratch, asked.precision),
        lambda: torch_model.verify(scratch, model, checkpoint.config),
    )
    if gpu is not None:
        # The builder holds all weights of an engine, and the model's copy is not needed any more.
        del model
        gc.collect()
        engines = {
            ENCODER_ENGINE: (ENCODER_GRAPH, encoder_profiles(asked)),
            DECODER_ENGINE: (DECODER_GRAPH, decoder_profiles(asked)),
        }
        build_engines(scratch, engines, graph_files, asked, checkpoint.config, gpu)


if __name__ == "__main__":
    run_worker(prepare, compile_checkpoint)
