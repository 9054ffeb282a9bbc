"""Trains the T5 spelling sample and writes `model/` and `metrics.json` beside this file.

    PYTHONPATH=. python samples/t5-spelling/train.py            # train, save, export, measure
    PYTHONPATH=. python samples/t5-spelling/train.py --check    # measure the committed graphs
    PYTHONPATH=. python samples/t5-spelling/train.py --continue --minutes 5    # train them further

Needs `pip install -r requirements-export.txt`. One thread and fixed seeds: the same package
versions on the same processor repeat the run, as long as `--minutes` does not end it early.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch
from measuring import HeldOut, measure
from queries import Pair, count_words, training_pairs
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import T5Config, T5ForConditionalGeneration

from containers.tensorrt.export.t5 import export_t5_decoder_step, export_t5_encoder
from samples.documentation import Corpus, is_recorded_version, load_corpus
from samples.external_data import refer_to_safetensors
from samples.training import Sample, TrainingRun, argument_parser

SAMPLE = Sample(
    folder=Path(__file__).resolve().parent,
    seed=20,
    rows_per_step=64,
    peak_learning_rate=3e-3,
    warm_up_steps=200,
    weight_decay=0.01,
)

PADDING, PADDING_ID = "<pad>", 0
END, END_ID = "</s>", 1
# The longest query has fewer bytes.
MOST_TOKENS = 64
WIDTH = 128
FEED_FORWARD_WIDTH = 512
LAYERS = 2
HEADS = 8

# Distances that the self-attention heads of each stack look at when training starts; the remaining
# heads look anywhere. Without a head start, thousands of steps go by until heads look at
# neighbouring letters.
ENCODER_DISTANCES = (-3, -2, -1, 1, 2, 3)
DECODER_DISTANCES = (-1, -2, -3, -4, -1)
# Added to the attention scores of that distance, which multiplies its weight by 148.
DISTANCE_BIAS = 5.0

# Pairs are sorted by length within this many batches, so that batches have little padding.
SORTED_BATCHES = 16
NOT_SCORED = -100


def new_tokenizer() -> Tokenizer:
    """Returns a tokenizer with a token for each byte, which ends every text with `</s>`."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [PADDING, END, *alphabet]
    tokenizer = Tokenizer(models.BPE({name: number for number, name in enumerate(names)}, []))
    tokenizer.add_special_tokens([AddedToken(PADDING, special=True), AddedToken(END, special=True)])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, END_ID)]
    )
    return tokenizer


def new_model(vocabulary_size: int) -> T5ForConditionalGeneration:
    """Returns the untrained network: T5's first architecture, with tied embeddings.

    No two training pairs need be equal, so there is no dropout.
    """
    config = T5Config(
        vocab_size=vocabulary_size,
        d_model=WIDTH,
        d_kv=WIDTH // HEADS,
        d_ff=FEED_FORWARD_WIDTH,
        num_layers=LAYERS,
        num_decoder_layers=LAYERS,
        num_heads=HEADS,
        relative_attention_num_buckets=32,
        relative_attention_max_distance=MOST_TOKENS,
        dropout_rate=0.0,
        feed_forward_proj="relu",
        pad_token_id=PADDING_ID,
        eos_token_id=END_ID,
        decoder_start_token_id=PADDING_ID,
    )
    model = T5ForConditionalGeneration(config)
    for stack, distances in (
        (model.encoder, ENCODER_DISTANCES),
        (model.decoder, DECODER_DISTANCES),
    ):
        attention = stack.block[0].layer[0].SelfAttention
        buckets = attention._relative_position_bucket(
            torch.tensor(distances),
            bidirectional=not stack.is_decoder,
            num_buckets=config.relative_attention_num_buckets,
            max_distance=config.relative_attention_max_distance,
        )
        with torch.no_grad():
            for head, bucket in enumerate(buckets.tolist()):
                attention.relative_attention_bias.weight[bucket, head] += DISTANCE_BIAS
    return model


def batches(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    """Yields endless batches of pairs of about one length, in an order by chance."""
    while True:
        chosen = sorted(
            islice(pairs, SORTED_BATCHES * SAMPLE.rows_per_step), key=lambda pair: len(pair.meant)
        )
        for number in torch.randperm(SORTED_BATCHES).tolist():
            yield chosen[number * SAMPLE.rows_per_step : (number + 1) * SAMPLE.rows_per_step]


def _loss(
    model: T5ForConditionalGeneration, tokenizer: Tokenizer, batch: Sequence[Pair]
) -> torch.Tensor:
    def padded(texts: list[str], padding: int) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(encoding.ids) for encoding in tokenizer.encode_batch(texts)],
            batch_first=True,
            padding_value=padding,
        )

    typed = padded([pair.typed for pair in batch], PADDING_ID)
    meant = padded([pair.meant for pair in batch], NOT_SCORED)
    mask = (typed != PADDING_ID).long()
    return model(input_ids=typed, attention_mask=mask, labels=meant, use_cache=False).loss


def save(model: T5ForConditionalGeneration, tokenizer: Tokenizer, directory: Path) -> None:
    """Writes the directory that `T5ForConditionalGeneration.from_pretrained` reads.

    The weights are stored as float16, which halves the files in the repository; config.json says
    float32, so that a reader computes in float32.
    """
    directory.mkdir(parents=True, exist_ok=True)
    model.config.architectures = ["T5ForConditionalGeneration"]
    model.config.dtype = "float32"
    model.config.save_pretrained(directory)
    model.generation_config.save_pretrained(directory)
    tied = set(model.all_tied_weights_keys)
    tensors = {
        name: tensor.to(torch.float16).contiguous()
        for name, tensor in model.state_dict().items()
        if name not in tied
    }
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    # safetensors makes the file private; a container may read it as another user.
    (directory / "model.safetensors").chmod(0o644)
    (directory / "tokenizer.json").write_text(tokenizer.to_str(pretty=False) + "\n")
    settings = {
        # Also the name that transformers 4 knows, which some serving images hold.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": PADDING,
        "padding_side": "right",
        "model_max_length": MOST_TOKENS,
        "clean_up_tokenization_spaces": False,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def load(directory: Path) -> T5ForConditionalGeneration:
    """Reads a saved model, computing in float32."""
    return T5ForConditionalGeneration.from_pretrained(directory, dtype=torch.float32).eval()


def export(model: T5ForConditionalGeneration, directory: Path) -> None:
    """Writes both graphs, which read their weights from the checkpoint in `directory`."""
    for write, name in ((export_t5_encoder, "encoder"), (export_t5_decoder_step, "decoder")):
        graph = directory / f"{name}.onnx"
        write(model, graph)
        # T5's table of distances is computed from a weight, so that no checkpoint has it.
        refer_to_safetensors(graph, computed=("position_bias.table",))


def held_out(corpus: Corpus) -> HeldOut:
    """Measures the graphs in `model/`."""
    return measure(SAMPLE.model_directory, corpus, seed=SAMPLE.seed, most_tokens=MOST_TOKENS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the process's exit status."""
    parser = argument_parser(__doc__, steps=6500, minutes=60)
    parser.add_argument(
        "--export", action="store_true", help="only export the committed model's graphs again"
    )
    parser.add_argument(
        "--continue",
        action="store_true",
        dest="continues",
        help="train the committed model further, at a third of the learning rate",
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(SAMPLE.seed)
    torch.use_deterministic_algorithms(True)
    if options.check:
        if not is_recorded_version(SAMPLE.metrics_path):
            return 1
        return SAMPLE.check(held_out(load_corpus()), abs_tol=0.2)
    if options.export:
        export(load(SAMPLE.model_directory), SAMPLE.model_directory)
        return 0

    corpus = load_corpus()
    vocabulary = count_words(corpus.training)
    tokenizer = new_tokenizer()
    sample, before = SAMPLE, TrainingRun(0, 0.0, "steps")
    if options.continues:
        sample = replace(SAMPLE, peak_learning_rate=SAMPLE.peak_learning_rate / 3)
        recorded = json.loads(SAMPLE.metrics_path.read_text())["training"]
        before = TrainingRun(recorded["steps"], recorded["minutes"], recorded["paced_by"])
        model = load(SAMPLE.model_directory)
    else:
        model = new_model(tokenizer.get_vocab_size())
    print(f"{len(vocabulary.dictionary)} words, {model.num_parameters()} parameters", flush=True)
    rows = batches(training_pairs(corpus.training, vocabulary, SAMPLE.seed + before.steps))
    run = sample.train(
        model,
        lambda: _loss(model, tokenizer, next(rows)),
        steps=options.steps,
        minutes=options.minutes,
    )
    run = TrainingRun(
        before.steps + run.steps,
        round(before.minutes + run.minutes, 1),
        max(before.paced_by, run.paced_by, key=("steps", "clock").index),
    )
    save(model, tokenizer, SAMPLE.model_directory)

    saved = load(SAMPLE.model_directory)
    export(saved, SAMPLE.model_directory)
    SAMPLE.record(
        run,
        held_out(corpus),
        saved,
        packages=("botocore", "tokenizers", "torch", "transformers"),
        pairs=run.steps * SAMPLE.rows_per_step,
        words=len(vocabulary.dictionary),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
