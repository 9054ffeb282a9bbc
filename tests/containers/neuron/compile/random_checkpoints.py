"""Random checkpoints that transformers has saved, and orders to compile them. Needs torch."""

import numpy as np
import pytest

from containers.encoders.batches import batch_arrays
from containers.encoders.tokenization import Row
from containers.neuron.compile.job import WorkerCommand
from tests.containers.neuron.compile.jobs import SIZES
from tests.containers.neuron.machine import WORDS
from tests.containers.neuron.vocabularies import bert_tokenizer
from tests.support.groups import TORCH_MARKS, load

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")

from containers.encoders.compile.modules import EncoderModule, input_names  # noqa: E402  (after the skips)

MARKS = [
    *TORCH_MARKS,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
HEADS = {
    "question-answering": "ForQuestionAnswering",
    "sequence-classification": "ForSequenceClassification",
    "token-classification": "ForTokenClassification",
    "embeddings": "Model",
}
ROWS = [
    Row((2, 7, 9, 3), (0, 0, 0, 0), 1),
    Row((2, 7, 4, 8, 11, 12, 3), (0, 0, 0, 1, 1, 1, 1), 3),
]


def save_checkpoint(directory, family="Bert", task="question-answering"):
    torch.manual_seed(3)
    sizes = dict(SIZES)
    if family == "DistilBert":
        sizes = {
            "vocab_size": 40, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32,
            "max_position_embeddings": 40, "pad_token_id": 0,
        }  # fmt: skip
    config = getattr(transformers, f"{family}Config")(
        # Large enough that an answer is better than the others by more than rounding.
        **sizes, initializer_range=0.5,
        num_labels=2 if task == "question-answering" else 3,
    )  # fmt: skip
    model = getattr(transformers, f"{family}{HEADS[task]}")(config).eval()
    model.save_pretrained(directory)
    (directory / "tokenizer.json").write_text(bert_tokenizer(WORDS).to_str())
    return model


def computed_alone(model, task, row):
    """What the model makes of one row, without any padding."""
    inputs = input_names(model)
    arrays = batch_arrays([row], bucket=len(row), batch_size=None, pad_token_id=0)
    tensors = [torch.from_numpy(arrays[name]) for name in inputs]
    with torch.no_grad():
        return [each.numpy()[0] for each in EncoderModule(model, task, inputs)(*tensors)]


def assert_computed(outputs, model, task, rows):
    """Asserts that a graph made of each row of a batch what the model makes of it alone."""
    for number, row in enumerate(rows):
        expected = computed_alone(model, task, row)
        for found, wanted in zip(outputs.values(), expected, strict=True):
            ours = found[number]
            if task != "sequence-classification":
                ours = ours[: len(row)]
            np.testing.assert_allclose(ours, wanted, atol=1e-5)


def order_for(checkpoint, output, **changes):
    fields = {
        "checkpoint": checkpoint,
        "output": output,
        "model_class": "BertForQuestionAnswering",
        "task": "question-answering",
        "target": "cpu",
        "runtime": "torchscript",
        "batch_size": 2,
        "sequence_lengths": (8, 16),
        "pipeline_cores": 1,
        "dtype": "fp32",
        "pooling": None,
        "normalize": False,
    }
    return WorkerCommand(**fields | changes)
