"""Trains the GPT-2 autocomplete sample and writes `model/` and `metrics.json` beside this file.

    PYTHONPATH=. python samples/gpt2-autocomplete/train.py            # train, save, measure, export
    PYTHONPATH=. python samples/gpt2-autocomplete/train.py --check    # measure the committed model

Needs `pip install -r requirements-export.txt`. One thread and fixed seeds: the same package
versions on the same processor repeat the run, as long as `--minutes` does not end it early.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel

from containers.tensorrt.export.gpt2 import export_gpt2_step
from samples.documentation import is_recorded_version, load_corpus
from samples.external_data import refer_to_safetensors
from samples.training import Sample, argument_parser

SAMPLE = Sample(
    folder=Path(__file__).resolve().parent,
    seed=20,
    rows_per_step=8,
    peak_learning_rate=2.5e-3,
    warm_up_steps=300,
    weight_decay=0.1,
)

END_OF_TEXT = "<|endoftext|>"
END_OF_TEXT_ID = 0
VOCABULARY_SIZE = 4096
CONTEXT_TOKENS = 128
WIDTH = 160
LAYERS = 5
HEADS = 5

EVALUATION_TOKENS_PER_BATCH = 4096


@dataclass(frozen=True)
class HeldOut:
    """How well a model predicts the held-out sentences, given how each of them starts.

    Every sentence is scored on its own, from its second token to its end-of-text token.

    Attributes:
        sentences: Held-out sentences.
        tokens: Tokens scored.
        perplexity: exp of the mean loss per token; comparable for one tokenizer only.
        bits_per_byte: Bits of loss per byte of the scored text; comparable between tokenizers.
    """

    sentences: int
    tokens: int
    perplexity: float
    bits_per_byte: float


def train_tokenizer(sentences: Sequence[str]) -> Tokenizer:
    """A byte-level BPE tokenizer, the kind GPT-2 has, learnt from the training sentences only."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    return tokenizer


def training_rows(
    encoded: Sequence[Sequence[int]], generator: torch.Generator
) -> Iterator[torch.Tensor]:
    """Endless shuffled rows of `CONTEXT_TOKENS + 1` token ids.

    A row holds whole sentences, each followed by the end-of-text token, and is cut at its end. The
    next row starts with a new sentence: position 0 is where a prompt will start, too.
    """
    while True:
        row: list[int] = []
        for index in torch.randperm(len(encoded), generator=generator).tolist():
            row.extend(encoded[index])
            row.append(END_OF_TEXT_ID)
            if len(row) > CONTEXT_TOKENS:
                yield torch.tensor(row[: CONTEXT_TOKENS + 1])
                row = []


def new_model() -> GPT2LMHeadModel:
    """The untrained network: GPT-2's architecture, tied embeddings, no dropout.

    Its activation is the fused form of GPT-2's `gelu_new`: the same function, 15 % faster to train
    with on a CPU. `save` writes GPT-2's own name for it.
    """
    config = GPT2Config(
        vocab_size=VOCABULARY_SIZE,
        n_positions=CONTEXT_TOKENS,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        bos_token_id=END_OF_TEXT_ID,
        eos_token_id=END_OF_TEXT_ID,
        pad_token_id=END_OF_TEXT_ID,
        activation_function="gelu_pytorch_tanh",
        # Hardly more than one pass over the text: there is nothing to overfit yet.
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    return GPT2LMHeadModel(config)


def _loss(model: GPT2LMHeadModel, batch: torch.Tensor) -> torch.Tensor:
    logits = model(input_ids=batch[:, :-1], use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


def measure(model: GPT2LMHeadModel, tokenizer: Tokenizer, held_out: Sequence[str]) -> HeldOut:
    """Scores the held-out sentences; see `HeldOut`."""
    # Longest first, so that a batch holds sentences of about one length and little padding.
    encodings = tokenizer.encode_batch(list(held_out))
    encoded = sorted(
        ([*encoding.ids, END_OF_TEXT_ID] for encoding in encodings), key=len, reverse=True
    )
    # The sentences are ASCII: one character is one byte.
    scored_bytes = sum(
        len(sentence) - encoding.offsets[0][1]
        for sentence, encoding in zip(held_out, encodings, strict=True)
    )
    loss_nats, tokens = 0.0, 0
    model.eval()
    with torch.no_grad():
        while encoded:
            count = max(1, EVALUATION_TOKENS_PER_BATCH // len(encoded[0]))
            chosen, encoded = encoded[:count], encoded[count:]
            # Padding stands to the right, where causal attention cannot see it.
            batch = torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(ids) for ids in chosen], batch_first=True, padding_value=-100
            )[:, : CONTEXT_TOKENS + 1]
            logits = model(input_ids=batch[:, :-1].clamp(min=0), use_cache=False).logits
            targets = batch[:, 1:].flatten()
            loss_nats += torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), targets, ignore_index=-100, reduction="sum"
            ).item()
            tokens += int((targets != -100).sum())
    return HeldOut(
        sentences=len(held_out),
        tokens=tokens,
        perplexity=round(math.exp(loss_nats / tokens), 3),
        bits_per_byte=round(loss_nats / math.log(2) / scored_bytes, 4),
    )


def save(model: GPT2LMHeadModel, tokenizer: Tokenizer, directory: Path) -> None:
    """Writes the directory that `GPT2LMHeadModel.from_pretrained` reads.

    The weights are stored as float16, which halves the files in the repository; config.json says
    float32, so that a reader computes in float32.
    """
    directory.mkdir(parents=True, exist_ok=True)
    model.config.architectures = ["GPT2LMHeadModel"]
    model.config.dtype = "float32"
    model.config.activation_function = "gelu_new"
    model.config.save_pretrained(directory)
    model.generation_config.save_pretrained(directory)
    tensors = {
        name: tensor.to(torch.float16).contiguous()
        for name, tensor in model.state_dict().items()
        # Tied to transformer.wte.weight.
        if name != "lm_head.weight"
    }
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    # safetensors makes the file private; a container may read it as another user.
    (directory / "model.safetensors").chmod(0o644)
    (directory / "tokenizer.json").write_text(tokenizer.to_str(pretty=False) + "\n")
    (directory / "tokenizer_config.json").write_text(
        json.dumps(
            {
                # Also the name that transformers 4 knows, which some serving images hold.
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": END_OF_TEXT,
                "eos_token": END_OF_TEXT,
                "pad_token": END_OF_TEXT,
                "padding_side": "left",
                "model_max_length": CONTEXT_TOKENS,
                "clean_up_tokenization_spaces": False,
            },
            indent=2,
        )
        + "\n"
    )


def load(directory: Path) -> tuple[GPT2LMHeadModel, Tokenizer]:
    """Reads a saved model, computing in float32, and its tokenizer."""
    model = GPT2LMHeadModel.from_pretrained(directory, dtype=torch.float32)
    return model.eval(), Tokenizer.from_file(str(directory / "tokenizer.json"))


def export(model: GPT2LMHeadModel, directory: Path) -> None:
    """Writes the step graph, which reads its weights from the checkpoint in `directory`."""
    graph = directory / "model.onnx"
    export_gpt2_step(model, graph)
    refer_to_safetensors(graph)


def check() -> int:
    """Measures the committed model and compares the result with metrics.json; 0 when equal."""
    if not is_recorded_version(SAMPLE.metrics_path):
        return 1
    model, tokenizer = load(SAMPLE.model_directory)
    return SAMPLE.check(measure(model, tokenizer, load_corpus().held_out), rel_tol=1e-3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the process's exit status."""
    parser = argument_parser(__doc__, steps=5500, minutes=60)
    parser.add_argument(
        "--export", action="store_true", help="only export the committed model's graph again"
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(SAMPLE.seed)
    torch.use_deterministic_algorithms(True)
    if options.check:
        return check()
    if options.export:
        export(load(SAMPLE.model_directory)[0], SAMPLE.model_directory)
        return 0

    corpus = load_corpus()
    print(f"{len(corpus.training)} training sentences, {len(corpus.held_out)} held out", flush=True)
    tokenizer = train_tokenizer(corpus.training)
    encoded = [encoding.ids for encoding in tokenizer.encode_batch(list(corpus.training))]
    model = new_model()
    rows = training_rows(encoded, torch.Generator().manual_seed(SAMPLE.seed))
    run = SAMPLE.train(
        model,
        lambda: _loss(model, torch.stack([next(rows) for _ in range(SAMPLE.rows_per_step)])),
        steps=options.steps,
        minutes=options.minutes,
    )
    save(model, tokenizer, SAMPLE.model_directory)

    saved, tokenizer = load(SAMPLE.model_directory)
    SAMPLE.record(
        run,
        measure(saved, tokenizer, corpus.held_out),
        saved,
        packages=("botocore", "tokenizers", "torch", "transformers"),
        tokens=run.steps * SAMPLE.rows_per_step * CONTEXT_TOKENS,
        sentences=len(corpus.training),
    )
    export(saved, SAMPLE.model_directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
