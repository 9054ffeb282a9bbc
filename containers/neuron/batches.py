"""Rows to the arrays of one batch: padded to a bucket, and to the compiled number of rows."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from containers.neuron.tokenization import Row


def batch_arrays(
    rows: Sequence[Row], *, bucket: int, batch_size: int | None, pad_token_id: int
) -> Mapping[str, NDArray[np.int64]]:
    """Returns `input_ids`, `attention_mask` and `token_type_ids`, [batch, bucket] each.

    Args:
        rows: at least one, none longer than `bucket`.
        bucket: sequence length in tokens, or a shorter one where the graph has none of its own.
        batch_size: rows of the graph; those beyond `rows` repeat the first one, since a row without
            any token to attend to computes NaN. None takes as many as there are.
        pad_token_id: fills rows up.
    """
    shape = (batch_size or len(rows), bucket)
    if len(rows) > shape[0]:
        raise ValueError(f"{len(rows)} rows for a graph of {shape[0]}")
    input_ids = np.full(shape, pad_token_id, np.int64)
    attention_mask = np.zeros(shape, np.int64)
    token_type_ids = np.zeros(shape, np.int64)
    for number in range(shape[0]):
        row = rows[number] if number < len(rows) else rows[0]
        input_ids[number, : len(row)] = row.token_ids
        attention_mask[number, : len(row)] = 1
        token_type_ids[number, : len(row)] = row.type_ids
    return {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "token_type_ids": token_type_ids,
    }


def fitting(buckets: Sequence[int], most: int, *, has_free_rows: bool) -> list[int]:
    """Chooses which of the inputs that wait are computed together.

    A graph for Neuron takes as long for one row as for all of its rows, and the longer its bucket
    the longer. So the first in the queue decides on the bucket, those of the same bucket go with it
    in their order, and rows that are still free take shorter ones, at no cost. Longer ones wait for
    a graph of theirs; they are first in the queue soon enough. Where each row costs what it is
    padded to, shorter ones wait for a graph of theirs as well.

    Args:
        buckets: of the inputs, in the order of the queue.
        most: rows of a batch.
        has_free_rows: whether all rows of a graph are computed, however few are taken.

    Returns:
        Their indices, ascending, the first of the queue among them.
    """
    bucket = buckets[0]
    same = [index for index, other in enumerate(buckets) if other == bucket][:most]
    if not has_free_rows:
        return same
    shorter = [index for index, other in enumerate(buckets) if other < bucket]
    return sorted(same + shorter[: most - len(same)])
