"""The child process of a compile job: everything that needs torch, onnx or TensorRT.

It writes a whole model directory into the scratch directory, and elsewhere only the reason of a
failure.
"""

import gc
import shutil
from pathlib import Path

from containers.jobs.checkpoint_files import tokenizer_problem
from containers.jobs.report import CompileError, stage
from containers.serving.model_files import TOKENIZER_FILE
from containers.tensorrt.compile.checkpoint import Checkpoint, prepare
from containers.tensorrt.compile.job import Hyperparameters, Job
from containers.tensorrt.compile.profiles import profiles
from containers.tensorrt.compile.stages import (
    build_engines,
    copy_chat_files,
    export_graphs,
    quantize,
    run_worker,
    write_configs,
)
from containers.tensorrt.engine_metadata import ENGINE_FILE, Gpu, candidate_count
from containers.tensorrt.model_directory import GRAPH_FILE


def compile_checkpoint(
    job: Job[Hyperparameters, Checkpoint], gpu: Gpu | None, scratch: Path
) -> None:
    from transformers import GPT2LMHeadModel

    from containers.tensorrt.compile import model as torch_model
    from containers.tensorrt.export.gpt2 import export_gpt2_step

    asked, checkpoint = job.hyperparameters, job.checkpoint
    with stage("load_checkpoint") as fields:
        model = torch_model.load_model(GPT2LMHeadModel, checkpoint.directory, asked.precision)
        if asked.dtype == "int8":
            # Its products cost ONNX Runtime less on a processor, and are not exported as SDPA.
            model.set_attn_implementation("eager")
        fields["checkpoint_bytes"] = checkpoint.weight_bytes
        fields["parameters"] = sum(weights.numel() for weights in model.parameters())
    with stage("write_configs"):
        write_configs(checkpoint, model, scratch)
        tokenizer = scratch / TOKENIZER_FILE
        if (checkpoint.directory / TOKENIZER_FILE).is_file():
            shutil.copyfile(checkpoint.directory / TOKENIZER_FILE, tokenizer)
        else:
            torch_model.write_tokenizer(checkpoint.directory, tokenizer)
            problem = tokenizer_problem(tokenizer, checkpoint.config.vocabulary_size)
            if problem is not None:
                raise CompileError(problem)
        copy_chat_files(checkpoint.directory, scratch)
    graph, config = scratch / GRAPH_FILE, checkpoint.config
    graph_files = export_graphs(
        scratch,
        "graph",
        lambda: export_gpt2_step(model, graph, precision=asked.precision),
        lambda: torch_model.verify(graph, model, config),
    )
    if asked.dtype == "int8":
        quantize(scratch, lambda: torch_model.measure_accuracy(graph, model, config, tokenizer))
    if gpu is not None:
        # The builder holds all weights of the engine, and the model's copy is not needed any more.
        del model
        gc.collect()
        build_engines(
            scratch,
            {ENGINE_FILE: (GRAPH_FILE, profiles(asked))},
            graph_files,
            asked,
            config,
            gpu,
            candidates=candidate_count(config.vocabulary_size),
        )


if __name__ == "__main__":
    run_worker(prepare, compile_checkpoint)
