"""Measures what int8 changes in an encoder's outputs, over fixed texts."""

import math
from pathlib import Path
from typing import Final

import numpy as np

from containers.encoders.batches import batch_arrays
from containers.encoders.manifest import QUESTION_ANSWERING, Manifest
from containers.encoders.session import Session, computed
from containers.encoders.tokenization import TextTokenizer

_TEXTS: Final = (
    "Who wrote the first program?",
    "In 1843 Ada Lovelace described how the Analytical Engine could compute Bernoulli numbers.",
    "The parameter is required if the bucket is in another region than the function.",
    "Best film of the year!",
    "I would not buy this again: the battery lasted two hours, and nobody answered my mails.",
    "Angela Merkel met the president of France in Paris on Tuesday.",
    "Sales rose by 4.2 percent in the third quarter, and profits fell for the first time.",
)


def measure_accuracy(
    exact: Session, quantized: Session, manifest: Manifest, tokenizer_file: Path
) -> dict[str, float]:
    """Compares a quantised graph with the float32 graph: logits, or pooled embeddings.

    Each text is computed alone. In question answering, the next text is its context. Returns the
    number of texts, and the norm of the differences as a share of the float32 norm.
    """
    tokenizer = TextTokenizer.read(tokenizer_file)
    is_pair = manifest.task == QUESTION_ANSWERING
    template = tokenizer.pair if is_pair else tokenizer.single
    room = (manifest.buckets[-1] - template.special_tokens) // (1 + is_pair)
    texts = [tokenizer.tokenize(text).token_ids[:room] for text in _TEXTS]
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
