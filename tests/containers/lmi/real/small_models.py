"""Makes a small model with random weights, and says what transformers generates with it.

    python -m tests.containers.lmi.real.small_models KIND DIRECTORY TEXTS < calls

A program, since it needs PyTorch, which the tests' own interpreter may not have. KIND is t5 or
gptj; the checkpoint is written into DIRECTORY. The calls are a list in JSON, each with the
arguments of `texts`; the list of the texts of each is written to the file TEXTS.
"""

import json
import sys
from pathlib import Path

import tokenizers
import torch
import transformers

from tests.containers.tensorrt import t5_models

ROOT = Path(__file__).resolve().parents[4]
GPT2_TOKENIZER = ROOT / "samples" / "gpt2-autocomplete" / "model" / "tokenizer.json"
END_OF_TEXT = "<|endoftext|>"
# T5's own, which has them in this order.
PAD, END, UNKNOWN = "<pad>", "</s>", "<unk>"
SPACE = "\u2581"


def t5(directory):
    """A T5 with FLAN-T5's gated layers, and a token for each character it knows."""
    t5_models.save_checkpoint(
        t5_models.random_t5(seed=21, gated=True, encoder_layers=2, decoder_layers=2), directory
    )
    characters = [SPACE, *map(chr, range(0x21, 0x7E))]
    pieces = [PAD, END, UNKNOWN, *characters]
    assert len(pieces) <= t5_models.VOCABULARY, "the model has too few tokens"
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.Unigram([(piece, 0.0) for piece in pieces], unk_id=2)
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, 1)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=END, unk_token=UNKNOWN
    ).save_pretrained(directory)


def gptj(directory):
    """A GPT-J with the sample GPT-2's tokens."""
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(GPT2_TOKENIZER), eos_token=END_OF_TEXT
    )
    torch.manual_seed(6)
    config = transformers.AutoConfig.for_model(
        "gptj",
        vocab_size=len(tokenizer),
        n_positions=512,
        n_embd=48,
        n_layer=2,
        n_head=3,
        rotary_dim=8,
        initializer_range=0.3,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def texts(directory, prompts, dtype, arguments):
    """Returns what transformers generates for prompts together, as one would write it oneself.

    `dtype` is PyTorch's name, and the arguments are those of `generate`, and a seed.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    config = transformers.AutoConfig.from_pretrained(directory)
    kind = (
        transformers.AutoModelForSeq2SeqLM
        if config.is_encoder_decoder
        else transformers.AutoModelForCausalLM
    )
    network = kind.from_pretrained(directory, dtype=getattr(torch, dtype))
    if not config.is_encoder_decoder:
        tokenizer.padding_side, tokenizer.pad_token = "left", tokenizer.eos_token
    tokens = tokenizer(prompts, padding=True, return_tensors="pt")
    if "seed" in arguments:
        torch.manual_seed(arguments.pop("seed"))
    answers = network.generate(**tokens, pad_token_id=tokenizer.pad_token_id, **arguments)
    skipped = 0 if config.is_encoder_decoder else tokens["input_ids"].shape[1]
    return tokenizer.batch_decode(answers[:, skipped:], skip_special_tokens=True)


if __name__ == "__main__":
    kind, checkpoint, answers = sys.argv[1:]
    {"t5": t5, "gptj": gptj}[kind](Path(checkpoint))
    found = [texts(Path(checkpoint), **call) for call in json.load(sys.stdin)]
    Path(answers).write_text(json.dumps(found), "utf-8")
