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
    run_worker,
    sizes,
    write_accuracy,
    write_configs,
)
from containers.tensorrt.engine_metadata import ENGINE_FILE, Gpu, candidate_count
from containers.tensorrt.model_directory import GRAPH_FILE


def compile_checkpoint(
    job: Job[Hyperparameters, Checkpoint], gpu: Gpu | None, scratch: Path
) -> None:
    from transformers import GPT2LMHeadModel

    from containers.tensorrt.compile import model as torch_model
    from containers.tensorrt.compile.pretrained_models import load_model
    from containers.tensorrt.export.gpt2 import export_gpt2_step
    from containers.tensorrt.export.graph_files import ExportError
    from containers.tensorrt.export.int8 import quantize_graph

    asked, checkpoint = job.hyperparameters, job.checkpoint
    with stage("load_checkpoint") as fields:
        model = load_model(GPT2LMHeadModel, checkpoint.directory, asked.precision)
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
    graph = scratch / GRAPH_FILE
    try:
        with stage("export_graph") as fields:
            others = set(scratch.iterdir())
            export_gpt2_step(model, graph, precision=asked.precision)
            graph_files = sorted(set(scratch.iterdir()) - others)
            fields["bytes"] = sizes(graph_files)
        with stage("verify_graph") as fields:
            parity = torch_model.verify(graph, model, checkpoint.config)
            fields["tokens_compared"] = parity.tokens
            fields["largest_logit_difference"] = parity.largest_logit_difference
        if asked.dtype == "int8":
            with stage("quantize_graph") as fields:
                fields["products"] = quantize_graph(graph)
                fields["bytes"] = sizes(scratch.glob(f"{GRAPH_FILE}*"))
            with stage("measure_accuracy") as fields:
                fields |= torch_model.measure_accuracy(graph, model, checkpoint.config, tokenizer)
                write_accuracy(scratch, fields)
    except ExportError as error:
        raise CompileError(str(error)) from error
    if gpu is not None:
        # The builder holds all weights of the engine, and the model's copy is not needed any more.
        del model
        gc.collect()
        build_engines(
            scratch,
            {ENGINE_FILE: (GRAPH_FILE, profiles(asked))},
            graph_files,
            asked,
            checkpoint.config,
            gpu,
            candidates=candidate_count(checkpoint.config.vocabulary_size),
        )


if __name__ == "__main__":
    run_worker(prepare, compile_checkpoint)
