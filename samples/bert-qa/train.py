"""Trains the question answering sample and writes `model/` and `metrics.json` beside this file.

    PYTHONPATH=. python samples/bert-qa/train.py            # train, export, measure
    PYTHONPATH=. python samples/bert-qa/train.py --check    # measure the committed model

Needs `pip install -r requirements-export.txt`. Seeds are fixed; the vocabulary that is learnt may
still differ from run to run in some pieces. `--checkpoint DIRECTORY` keeps the Hugging Face
checkpoint as well.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch
from corpus import Example, examples, first_examples
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForQuestionAnswering

from containers.encoders.batches import batch_arrays
from containers.encoders.compile.modules import export_onnx
from containers.encoders.manifest import (
    QUESTION_ANSWERING,
    TASK_OUTPUTS,
    Manifest,
    read_manifest,
    write_manifest,
)
from containers.encoders.onnx_session import OnnxRuntimeSession
from containers.encoders.tasks import QuestionAnswering, TaskSetting
from containers.encoders.tokenization import TextTokenizer
from samples.training import Sample, argument_parser

SAMPLE = Sample(
    folder=Path(__file__).resolve().parent,
    seed=7,
    rows_per_step=32,
    peak_learning_rate=1e-3,
    warm_up_steps=100,
    weight_decay=0.01,
)

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY_SIZE = 700
# Of the shipped configs.
SEQUENCE_LENGTH = 128
BUCKETS = (32, 64, 128)
LARGEST_BATCH = 64
WIDTH = 128
LAYERS = 3
HEADS = 4
INNER_WIDTH = 256

TOKENIZER_EXAMPLES = 4000
HELD_OUT_EXAMPLES = 1000
HELD_OUT_SEED = 1001


@dataclass(frozen=True)
class HeldOut:
    """How well the served graph answers questions about subjects that it was not trained on.

    Attributes:
        questions: asked, those without an answer in the text included.
        exact: share that is answered with exactly the right characters, or rightly not at all.
        exact_with_answer: the same, of the questions that have an answer.
        exact_without_answer: the same, of those that have none.
    """

    questions: int
    exact: float
    exact_with_answer: float
    exact_without_answer: float


def train_tokenizer(texts: Sequence[str]) -> Tokenizer:
    """A WordPiece tokenizer, the kind BERT has, learnt from the training text only."""
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL_TOKENS[1]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=list("abcdefghijklmnopqrstuvwxyz0123456789"),
        continuing_subword_prefix="##",
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer


@dataclass(frozen=True)
class TrainingRow:
    """One example as the model sees it.

    Attributes:
        token_ids: special tokens included.
        type_ids: of each token.
        first: column in which the answer begins; 0 where there is none.
        last: column in which it ends.
    """

    token_ids: list[int]
    type_ids: list[int]
    first: int
    last: int


def training_rows(tokenizer: Tokenizer, stream: Iterator[Example]) -> Iterator[TrainingRow]:
    """Yields the examples that fit a row."""
    for example in stream:
        encoding = tokenizer.encode(example.question, example.context)
        if len(encoding.ids) > SEQUENCE_LENGTH:
            continue
        first = last = 0
        if example.answer:
            end = example.start + len(example.answer)
            columns = [
                column
                for column, (text, (start, stop)) in enumerate(
                    zip(encoding.sequence_ids, encoding.offsets, strict=True)
                )
                if text == 1 and start < end and stop > example.start
            ]
            first, last = columns[0], columns[-1]
        yield TrainingRow(encoding.ids, encoding.type_ids, first, last)


def new_model(tokenizer: Tokenizer) -> BertForQuestionAnswering:
    """The untrained network: BERT's architecture, without dropout: no example comes twice."""
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER_WIDTH,
        max_position_embeddings=SEQUENCE_LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=tokenizer.token_to_id("[PAD]"),
    )
    return BertForQuestionAnswering(config)


def _loss(model: BertForQuestionAnswering, batch: Sequence[TrainingRow]) -> torch.Tensor:
    columns = max(len(row.token_ids) for row in batch)
    input_ids = torch.zeros(len(batch), columns, dtype=torch.int64)
    type_ids, mask = torch.zeros_like(input_ids), torch.zeros_like(input_ids)
    for number, row in enumerate(batch):
        length = len(row.token_ids)
        input_ids[number, :length] = torch.tensor(row.token_ids)
        type_ids[number, :length] = torch.tensor(row.type_ids)
        mask[number, :length] = 1
    output = model(
        input_ids=input_ids,
        attention_mask=mask,
        token_type_ids=type_ids,
        start_positions=torch.tensor([row.first for row in batch]),
        end_positions=torch.tensor([row.last for row in batch]),
    )
    return output.loss


def save(model: BertForQuestionAnswering, tokenizer: Tokenizer, directory: Path) -> None:
    """Writes the directory that the container serves on the CPU."""
    directory.mkdir(parents=True, exist_ok=True)
    model.config.architectures = ["BertForQuestionAnswering"]
    model.config.save_pretrained(directory)
    (directory / "tokenizer.json").write_text(tokenizer.to_str(pretty=False) + "\n")
    inputs = export_onnx(model, QUESTION_ANSWERING, directory / "model.onnx")
    manifest = Manifest(
        task=QUESTION_ANSWERING,
        target="cpu",
        runtime="onnxruntime",
        batch_size=LARGEST_BATCH,
        pipeline_cores=1,
        dtype="fp32",
        graphs=dict.fromkeys(BUCKETS, "model.onnx"),
        inputs=inputs,
        outputs=TASK_OUTPUTS[QUESTION_ANSWERING],
        pooling=None,
        normalize=False,
        versions={name: version(name) for name in ("onnx", "torch", "transformers")},
    )
    write_manifest(manifest, directory)


class ServedModel:
    """The model as the container computes it, without its processes and its server.

    Args:
        directory: the model directory.
    """

    def __init__(self, directory: Path) -> None:
        self._manifest = read_manifest(directory)
        self._session = OnnxRuntimeSession(directory, self._manifest, threads=1)
        self._task = QuestionAnswering(
            TaskSetting(
                tokenizer=TextTokenizer.read(directory / "tokenizer.json"),
                buckets=self._manifest.buckets,
                max_inputs=256,
                max_characters=100_000,
            )
        )

    def answer(self, question: str, context: str) -> str:
        """Returns the answer, which may be that there is none."""
        body = {
            "inputs": {"question": question, "context": context},
            "parameters": {"handle_impossible_answer": True},
        }
        outputs = []
        for value in self._task.parse(json.dumps(body).encode()):
            arrays = batch_arrays([value.row], bucket=value.bucket, batch_size=None, pad_token_id=0)
            computed = self._session.run(arrays)
            row = {name: array[0] for name, array in computed.items()}
            outputs.append(self._task.decode(value, row))
        return str(json.loads(self._task.render(outputs))["answer"])


def measure(directory: Path) -> HeldOut:
    """Asks the served graph about what it was not trained on; see `HeldOut`."""
    model = ServedModel(directory)
    asked = first_examples(HELD_OUT_EXAMPLES, held_out=True, seed=HELD_OUT_SEED)
    results = [
        (bool(example.answer), model.answer(example.question, example.context) == example.answer)
        for example in asked
    ]

    def share(right: Sequence[bool]) -> float:
        return round(sum(right) / len(right), 4)

    return HeldOut(
        questions=len(results),
        exact=share([is_right for _, is_right in results]),
        exact_with_answer=share([is_right for has_answer, is_right in results if has_answer]),
        exact_without_answer=share(
            [is_right for has_answer, is_right in results if not has_answer]
        ),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the process's exit status."""
    parser = argument_parser(__doc__, steps=2000, minutes=20)
    parser.add_argument("--threads", type=int, default=1, help="threads to train with (default 1)")
    parser.add_argument("--checkpoint", type=Path, help="directory to keep the checkpoint in")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    torch.manual_seed(SAMPLE.seed)
    if options.check:
        return SAMPLE.check(measure(SAMPLE.model_directory), abs_tol=0.005)

    notes = first_examples(TOKENIZER_EXAMPLES, held_out=False, seed=SAMPLE.seed)
    tokenizer = train_tokenizer([f"{note.question} {note.context}" for note in notes])
    model = new_model(tokenizer)
    print(f"{model.num_parameters()} parameters", flush=True)
    rows = training_rows(tokenizer, examples(held_out=False, seed=SAMPLE.seed + 1))
    run = SAMPLE.train(
        model,
        lambda: _loss(model, [next(rows) for _ in range(SAMPLE.rows_per_step)]),
        steps=options.steps,
        minutes=options.minutes,
    )
    model.eval()
    save(model, tokenizer, SAMPLE.model_directory)
    if options.checkpoint is not None:
        model.save_pretrained(options.checkpoint)
        (options.checkpoint / "tokenizer.json").write_text(tokenizer.to_str() + "\n")
    SAMPLE.record(
        run,
        measure(SAMPLE.model_directory),
        model,
        packages=("onnxruntime", "tokenizers", "torch", "transformers"),
        rows_per_step=SAMPLE.rows_per_step,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
