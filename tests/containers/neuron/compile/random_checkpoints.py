"""Random checkpoints that transformers has saved, and orders to compile them. Needs torch."""

from containers.neuron.compile.job import WorkerCommand
from tests.containers.neuron.compile.jobs import SIZES
from tests.containers.neuron.machine import WORDS
from tests.containers.neuron.vocabularies import bert_tokenizer
from tests.support.groups import load

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")

HEADS = {
    "question-answering": "ForQuestionAnswering",
    "sequence-classification": "ForSequenceClassification",
    "token-classification": "ForTokenClassification",
    "embeddings": "Model",
}


def save_checkpoint(directory, family="Bert", task="question-answering"):
    """Writes a random checkpoint; returns its model."""
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
