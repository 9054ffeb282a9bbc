"""Turns logits into scores, and scores into the labels of whole texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


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
