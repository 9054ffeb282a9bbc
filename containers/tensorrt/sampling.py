"""Samples one token from the model's distribution, with the row's own random stream.

The generator is NumPy's over PCG64, named explicitly instead of "the default", and seeded through
`SeedSequence`. NumPy guarantees the bits of both for good. It may change how `Generator.random`
uses them, with notice, and a test would show that
(https://numpy.org/doc/stable/reference/random/compatibility.html). One number is drawn per token
and nothing else reads the stream, so neighbours in a batch cannot shift it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Sampling:
    """Settings of sampling; the filters apply in this order, as in Hugging Face's generate.

    Attributes:
        temperature: divides the logits; above 0.
        top_k: keeps the k likeliest tokens; None keeps all.
        top_p: keeps the fewest likeliest tokens whose probabilities reach p; 1 keeps all.
        seed: starting point of the row's own generator; None takes one from the system.
        stream: distinguishes the rows of one request, which share its seed: the index of the input
            and of the completion.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None
    stream: tuple[int, int] = (0, 0)

    def generator(self) -> np.random.Generator:
        """Returns a new generator; the same seed and stream give the same numbers."""
        return np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=self.stream))
        )


def choose_token(
    logits: npt.NDArray[np.float32], sampling: Sampling, random: np.random.Generator
) -> int:
    """Samples one token.

    Args:
        logits: [vocabulary], of one row.
        sampling: temperature and filters.
        random: the row's own generator; one number is drawn from it.
    """
    scores = logits.astype(np.float64) / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < scores.size:
        kth_largest = np.partition(scores, -sampling.top_k)[-sampling.top_k]
        scores[scores < kth_largest] = -np.inf
    # Likeliest first; stable, so that equal scores always have the same order.
    order = np.argsort(-scores, kind="stable")
    weights = np.exp(scores[order] - scores[order[0]])
    cumulative = np.cumsum(weights)
    if sampling.top_p < 1.0:
        kept = int(np.searchsorted(cumulative, sampling.top_p * cumulative[-1])) + 1
        cumulative = cumulative[:kept]
    # "right" skips tokens of weight 0; rounding can make the product equal to the total.
    drawn = int(np.searchsorted(cumulative, random.random() * cumulative[-1], side="right"))
    return int(order[min(drawn, cumulative.size - 1)])
