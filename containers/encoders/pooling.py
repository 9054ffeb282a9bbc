"""Turns token vectors into one vector per text, in workers, so that less data is sent.

A worker imports this: it keeps to Python 3.10 and NumPy.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

POOLINGS: Final = ("mean", "cls")


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
