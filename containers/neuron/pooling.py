"""Token vectors to one vector for each text; workers do it, so that less travels between processes.

A worker imports this: it keeps to Python 3.10 and NumPy.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

POOLINGS: Final = ("mean", "cls")


def pooled(
    vectors: NDArray[np.floating[Any]], attention_mask: NDArray[np.int64], pooling: str
) -> NDArray[np.float32]:
    """Returns one vector for each row.

    Args:
        vectors: of each row's tokens, [rows, columns, width].
        attention_mask: 1 for tokens and 0 for padding, [rows, columns].
        pooling: "mean" of the tokens, special ones included, or "cls", the first one's.
    """
    if pooling == "cls":
        return vectors[:, 0].astype(np.float32)
    # Padding is left out and not multiplied by 0, which would keep its NaN.
    mask = attention_mask[:, :, None].astype(bool)
    totals = np.where(mask, vectors, 0).sum(axis=1, dtype=np.float64)
    means = totals / np.maximum(mask.sum(axis=1), 1)
    return np.asarray(means, np.float32)


def normalized(vector: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Returns the vector with length 1; one of length 0 stays as it is."""
    values = vector.astype(np.float64)
    length = float(np.linalg.norm(values))
    return values / length if length else values
