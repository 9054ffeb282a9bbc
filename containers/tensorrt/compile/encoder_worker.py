"""The child process of a compile job of an encoder; see `worker`."""

import gc
import importlib.metadata
import math
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from containers.encoders.batches import batch_arrays
from containers.encoders.compile.checkpoint import Checkpoint
from containers.encoders.manifest import (
    CPU,
    ENCODER_FILE,
    QUESTION_ANSWERING,
    TASK_OUTPUTS,
    TENSORRT,
    Manifest,
    write_manifest,
)
from containers.encoders.onnx_session import OnnxRuntimeSession
from containers.encoders.session import Session, computed
from containers.encoders.tokenization import TextTokenizer
from containers.jobs.report import stage
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE
from containers.tensorrt.compile.command import Hyperparameters, prepare_encoder
from containers.tensorrt.compile.job import Job
from containers.tensorrt.compile.profiles import encoder_profiles
from containers.tensorrt.compile.stages import build_plans, quantize, run_worker
from containers.tensorrt.engine_metadata import ENGINE_FILE, Gpu
from containers.tensorrt.model_directory import GRAPH_FILE

_PACKAGES: Final = ("torch", "transformers", "onnx")
_ONE_THREAD_A_CORE: Final = 0
# A share of the largest number, as for float32. Random RoBERTa and XLM-RoBERTa of six layers, with
# weights of a trained model's size, differed by at most 0.0021 in all tasks. Random models with
# weights ten times as large differ by up to 0.08, and are refused.
_HALF_TOLERANCE: Final = 3e-2
_MEASURED_TEXTS: Final = (
    "Who wrote the first program?",
    "In 1843 Ada Lovelace described how the Analytical Engine could compute Bernoulli numbers.",
    "The parameter is required if the bucket is in another region than the function.",
    "Best film of the year!",
    "I would not buy this again: the battery lasted two hours, and nobody answered my mails.",
    "Angela Merkel met the president of France in Paris on Tuesday.",
    "Sales rose by 4.2 percent in the third quarter, and profits fell for the first time.",
)


def compile_checkpoint(
    job: Job[Hyperparameters, Checkpoint], gpu: Gpu | None, scratch: Path
) -> None:
    from containers.encoders.compile import modules
    from containers.encoders.compile.parity import TOLERANCE, check_session
    from containers.jobs.pretrained import check_finite
    from containers.tensorrt.export.graph_files import MODEL_TYPES, save_graph

    asked, checkpoint = job.hyperparameters, job.checkpoint
    is_half = asked.precision == "fp16"
    with stage("load_checkpoint") as fields:
        modules.quieten()
        model = modules.load_model(checkpoint.directory, checkpoint.model_class, asked.task)
        model = model.to(MODEL_TYPES[asked.precision])
        check_finite(model, f" in {asked.precision}")
        fields["checkpoint_bytes"] = checkpoint.weight_bytes
        fields["parameters"] = sum(weights.numel() for weights in model.parameters())
    with stage("write_configs"):
        for name in (CONFIG_FILE, TOKENIZER_FILE):
            shutil.copyfile(checkpoint.directory / name, scratch / name)
    with stage("export_graph") as fields:
        save_graph(modules.trace_onnx(model, asked.task), scratch / GRAPH_FILE, {})
        graph_files = sorted(scratch.glob(f"{GRAPH_FILE}*"))
        fields["bytes"] = {path.name: path.stat().st_size for path in graph_files}
    inputs = modules.input_names(model)
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
        modules.EncoderModule(model, asked.task, inputs).eval(),
        manifest,
        asked,
        _HALF_TOLERANCE if is_half else TOLERANCE,
    )
    if asked.dtype == "int8":
        manifest = replace(manifest, dtype=asked.dtype)
        # The session holds the graph from before.
        quantize(scratch, partial(measure_accuracy, session, manifest, scratch))
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


def measure_accuracy(exact: Session, manifest: Manifest, scratch: Path) -> dict[str, float]:
    """Compares a quantised graph with the float32 graph: logits, or pooled embeddings.

    Each text is computed alone. In question answering, the next text is its context. Returns the
    number of texts, and the norm of the differences as a share of the float32 norm.
    """
    quantized = OnnxRuntimeSession(scratch, manifest, threads=_ONE_THREAD_A_CORE)
    tokenizer = TextTokenizer.read(scratch / TOKENIZER_FILE)
    is_pair = manifest.task == QUESTION_ANSWERING
    template = tokenizer.pair if is_pair else tokenizer.single
    room = (manifest.buckets[-1] - template.special_tokens) // (1 + is_pair)
    texts = [tokenizer.tokenize(text).token_ids[:room] for text in _MEASURED_TEXTS]
    batches = []
    for pair in zip(texts, [*texts[1:], texts[0]], strict=True):
        row = template.row(*pair[: 1 + is_pair])
        batches.append(batch_arrays([row], bucket=len(row), batch_size=None, pad_token_id=0))
    wanted, found = (
        np.concatenate(
            [each.ravel() for batch in batches for each in computed(run, manifest, batch).values()]
        )
        for run in (exact, quantized)
    )
    share = float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
    # Rounded up, because another processor adds in another order. NaN raises ValueError.
    return {"texts": len(texts), "relative_difference": math.ceil(1000 * share) / 1000}


if __name__ == "__main__":
    run_worker(prepare_encoder, compile_checkpoint)
