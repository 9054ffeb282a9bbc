"""Turns rows into the arrays of one batch: padded to a bucket and to the compiled batch size."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from containers.encoders.tokenization import Row


def batch_arrays(
    rows: Sequence[Row], *, bucket: int, batch_size: int | None, pad_token_id: int
) -> Mapping[str, NDArray[np.int64]]:
    """Returns `input_ids`, `attention_mask` and `token_type_ids`, [batch, bucket] each.

    If the graph takes any length, the longest row's length is enough for `bucket`. Missing rows of
    `batch_size` repeat the first row, since a row without any token to attend to computes NaN. None
    makes an array of exactly `rows`.
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
    """Returns the ascending indices of the waiting inputs that are computed together, 0 among them.

    A graph for Neuron takes as long for one row as for all of its rows, and longer for a longer
    bucket. The first input in the queue therefore decides the bucket, and inputs of the same bucket
    join it in their order. Shorter inputs fill the rows that are still free, at no cost. Longer
    inputs wait for a graph of their own bucket; they are first in the queue soon enough. If each
    row costs its padded length, shorter inputs wait for their own bucket too.

    `buckets` has the bucket of each waiting input, in the order of the queue. Any number does that
    only inputs of about one length share. `has_free_rows` says that the graph computes all of its
    rows, however few are used.
    """
    bucket = buckets[0]
    same = [index for index, other in enumerate(buckets) if other == bucket][:most]
    if not has_free_rows:
        return same
    shorter = [index for index, other in enumerate(buckets) if other < bucket]
    return sorted(same + shorter[: most - len(same)])
