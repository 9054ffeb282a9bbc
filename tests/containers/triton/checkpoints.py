"""Checkpoints of small random T5 models, with a tokenizer of as many words as they know."""

import json

from tokenizers import Tokenizer, models, pre_tokenizers, processors

from tests.containers.tensorrt.t5_models import END, HEAD_DIM, HEADS, VOCABULARY, save_checkpoint
from tests.support.compile_jobs import write_weights

CONFIG = {
    "model_type": "t5",
    "architectures": ["T5ForConditionalGeneration"],
    "num_layers": 1,
    "num_decoder_layers": 2,
    "num_heads": HEADS,
    "d_kv": HEAD_DIM,
    "vocab_size": VOCABULARY,
    "decoder_start_token_id": 0,
    "eos_token_id": END,
}


def word_tokenizer(words=VOCABULARY - 3):
    """Knows the words `w3`, `w4`, ...; ends every text with the end of text, as T5's does."""
    special = ("<pad>", "</s>", "<unk>")
    vocabulary = [*special, *(f"w{number}" for number in range(3, 3 + words))]
    tokenizer = Tokenizer(
        models.WordLevel(
            {word: number for number, word in enumerate(vocabulary)},
            unk_token="<unk>",  # noqa: S106  (no password)
        )
    )
    tokenizer.add_special_tokens(list(special))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", END)]
    )
    return tokenizer


def write_checkpoint_files(directory, **changes):
    """Writes what has the form of a checkpoint, for jobs that come no further than its checks."""
    (directory / "config.json").write_text(json.dumps(CONFIG | changes))
    word_tokenizer().save(str(directory / "tokenizer.json"))
    write_weights(directory)


def write_checkpoint(model, directory):
    save_checkpoint(model, directory)
    word_tokenizer().save(str(directory / "tokenizer.json"))
