"""Checks that a graph computes the same as its model. Imports torch; it keeps to Python 3.10.

The graph computes rows of several lengths in one padded batch. The model computes each of them
alone, without padding. A wrong mask shows as well as a wrong operator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from containers.encoders.compile.job import EncoderHyperparameters
from containers.encoders.compile.modules import EncoderModule
from containers.encoders.manifest import INPUT_NAMES, SEQUENCE_CLASSIFICATION, Manifest
from containers.encoders.session import Session
from containers.jobs.report import CompileError, stage

# Largest difference accepted between two float32 implementations of one model. It is a share of the
# largest number that the model computes, or absolute if that number is below 1. The BERT of the
# sample and random models of every family here were below 1e-5.
TOLERANCE: Final = 1e-3
_ROWS_COMPARED: Final = 3
# Any: float32.
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Parity:
    """The extent and the result of a comparison."""

    values: int
    largest_difference: float


def check_graph(
    run: Callable[[Arrays], "tuple[NDArray[Any], ...]"],
    module: EncoderModule,
    inputs: "tuple[str, ...]",
    order: EncoderHyperparameters,
    tokens: int,
    tolerance: float = TOLERANCE,
) -> Parity:
    """Checks the graph of one bucket of `tokens`; raises `CompileError` if its outputs differ.

    `run` computes the graph's outputs, and `module` what is expected, in the graph's precision. The
    tolerance is a share of the largest number.
    """
    numbers = np.random.default_rng(tokens)
    lengths = [tokens, max(1, tokens // 2), max(1, tokens // 3)][:_ROWS_COMPARED]
    lengths = [lengths[row % len(lengths)] for row in range(order.batch_size)]
    arrays = {name: np.zeros((order.batch_size, tokens), np.int64) for name in INPUT_NAMES}
    for row, length in enumerate(lengths):
        vocabulary = int(module.model.config.vocab_size)
        # RoBERTa counts positions without the padding token, whatever its id is.
        padding = int(module.model.config.pad_token_id or 0)
        ids = numbers.integers(vocabulary - 1, size=length) if vocabulary > 1 else np.zeros(length)
        arrays["input_ids"][row] = padding
        arrays["input_ids"][row, :length] = ids + (ids >= padding)
        arrays["attention_mask"][row, :length] = 1
    computed = run(arrays)
    largest, scale, values = 0.0, 1.0, 0
    for row, length in list(enumerate(lengths))[:_ROWS_COMPARED]:
        alone = tuple(
            torch.from_numpy(arrays[name][row : row + 1, :length].copy()) for name in inputs
        )
        with torch.no_grad():
            expected = module(*alone)
        for ours, theirs in zip(computed, expected, strict=True):
            wanted = theirs[0].float().numpy()
            found = ours[row] if order.task == SEQUENCE_CLASSIFICATION else ours[row, :length]
            if found.shape != wanted.shape or not np.isfinite(found).all():
                raise CompileError(
                    f"the graph for {tokens} tokens does not compute what the model does: its "
                    f"output has the shape {list(found.shape)} for {list(wanted.shape)}, or holds "
                    "numbers that are not finite"
                )
            largest = max(largest, float(np.abs(found - wanted).max()))
            scale = max(scale, float(np.abs(wanted).max()))
            values += wanted.size
    if largest > tolerance * scale:
        raise CompileError(
            f"the graph for {tokens} tokens does not compute what the model does: it differs by "
            f"{largest:.3g} where the largest number is {scale:.3g}, and at most "
            f"{tolerance * scale:.3g} is accepted"
        )
    return Parity(values, largest)


def check_session(
    session: Session,
    module: EncoderModule,
    manifest: Manifest,
    order: EncoderHyperparameters,
    tolerance: float = TOLERANCE,
) -> None:
    """Checks the written graphs of all buckets, with a session of them; see `check_graph`."""
    for tokens in manifest.buckets:
        with stage("verify_graph", sequence_length=tokens) as fields:
            parity = check_graph(
                lambda arrays: tuple(session.run(arrays).values()),
                module,
                manifest.inputs,
                order,
                tokens,
                tolerance,
            )
            fields["values_compared"] = parity.values
            fields["largest_difference"] = parity.largest_difference
