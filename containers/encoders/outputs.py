"""Turns a model's outputs into scores and labels, and token vectors into one vector per text.

Workers pool, so that less data is sent: this module keeps to Python 3.10 and NumPy.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

POOLINGS: Final = ("mean", "cls")


def scores(logits: NDArray[np.floating[Any]], function: str) -> Scores:
    """Returns the scores of logits, over the last axis; `none` returns the logits.

    Raises `FloatingPointError` if a logit is not a finite number.
    """
    values = logits.astype(np.float64)
    if not np.isfinite(values).all():
        raise FloatingPointError("the model computed a logit that is not a finite number")
    if function == "none":
        return values
    if function == "sigmoid":
        # The exponent is never positive, so it cannot overflow.
        small = np.exp(-np.abs(values))
        return np.where(values >= 0, 1.0, small) / (1.0 + small)
    exponentials = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


# Any: JSON.
def best_labels(text_scores: Scores, names: Sequence[str], *, top_k: int) -> list[dict[str, Any]]:
    """Returns the best labels of one text as `label` and `score`, the best first."""
    order = np.argsort(-text_scores, kind="stable")[:top_k]
    return [{"label": names[index], "score": float(text_scores[index])} for index in order]


def pooled(
    vectors: NDArray[np.floating[Any]], attention_mask: NDArray[np.int64], pooling: str
) -> NDArray[np.float32]:
    """Returns one vector for each row of token vectors, [rows, columns, width].

    The mask is 1 for tokens and 0 for padding. `mean` is of the tokens, special tokens included,
    and `cls` the first token's vector.
    """
    if pooling == "cls":
        return vectors[:, 0].astype(np.float32)
    # Padding is selected away: multiplying it by 0 would keep its NaN.
    mask = attention_mask[:, :, None].astype(bool)
    totals = np.where(mask, vectors, 0).sum(axis=1, dtype=np.float64)
    means = totals / np.maximum(mask.sum(axis=1), 1)
    return np.asarray(means, np.float32)


def normalized(vector: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Returns the vector scaled to length 1; a vector of length 0 is unchanged."""
    values = vector.astype(np.float64)
    length = float(np.linalg.norm(values))
    return values / length if length else values
