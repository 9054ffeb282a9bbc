"""Loads a T5 checkpoint, exports its graphs and checks them. Imports torch and transformers."""

from pathlib import Path

from transformers import T5ForConditionalGeneration

from containers.tensorrt.compile.model import NEW_TOKENS, example_prompts, plain_generation
from containers.tensorrt.compile.model import load_model as load
from containers.tensorrt.export.graph_files import Precision
from containers.tensorrt.export.parity import Parity, check_t5_graphs
from containers.tensorrt.export.t5 import export_t5_decoder_step, export_t5_encoder
from containers.triton.compile.checkpoint import Checkpoint
from containers.triton.model_directory import DECODER_GRAPH, ENCODER_GRAPH, SequenceConfig


def load_model(checkpoint: Checkpoint, precision: Precision) -> T5ForConditionalGeneration:
    """Loads a checkpoint's weights, in the precision of the graphs; see `load`.

    The layers called `wo` stay in float32 in either precision, as transformers has it. The graphs
    have them in float16 and scaled.
    """
    model: T5ForConditionalGeneration = load(
        T5ForConditionalGeneration, checkpoint.directory, precision
    )
    return model


def export_graphs(model: T5ForConditionalGeneration, directory: Path, precision: Precision) -> None:
    """Writes encoder.onnx and decoder.onnx, and large weights beside them.

    Raises `ExportError` if the model is of another family.
    """
    export_t5_encoder(model, directory / ENCODER_GRAPH, precision=precision)
    export_t5_decoder_step(model, directory / DECODER_GRAPH, precision=precision)


def verify(directory: Path, model: T5ForConditionalGeneration, config: SequenceConfig) -> Parity:
    """Checks that the graphs' tokens and logits equal the model's, or raises `ParityError`."""
    with plain_generation(model, decoder_start_token_id=config.start_token_id):
        return check_t5_graphs(
            directory / ENCODER_GRAPH,
            directory / DECODER_GRAPH,
            model,
            example_prompts(config.vocabulary_size),
            new_tokens=NEW_TOKENS,
        )
