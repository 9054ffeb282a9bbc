"""Drawing one token from the model's distribution, from a random stream of the row's own.

The generator is NumPy's over PCG64, by name and not "the default one", seeded through
`SeedSequence`. NumPy promises the bits of both for good; what `Generator.random` makes of them it
may change, with notice, which a test would tell
(https://numpy.org/doc/stable/reference/random/compatibility.html). One number is drawn per token
and nothing else reads the stream, so neighbours in a batch cannot shift it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Sampling:
    """How a token is drawn; the filters apply in this order, as in Hugging Face's generate.

    Attributes:
        temperature: divides the logits; above 0.
        top_k: keeps the k likeliest tokens; None keeps all.
        top_p: keeps the fewest likeliest tokens whose probabilities reach p; 1 keeps all.
        seed: starting point of the row's own generator; None takes one from the system.
        stream: tells apart the rows of one request, which share its seed: the input's index and
            the completion's.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None
    stream: tuple[int, int] = (0, 0)

    def generator(self) -> np.random.Generator:
        """Returns a new generator, the same one for the same seed and stream."""
        return np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=self.stream))
        )


def choose_token(
    logits: npt.NDArray[np.float32], sampling: Sampling, random: np.random.Generator
) -> int:
    """Draws one token from the logits [vocabulary] of one row."""
    scores = logits.astype(np.float64) / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < scores.size:
        kth_largest = np.partition(scores, -sampling.top_k)[-sampling.top_k]
        scores[scores < kth_largest] = -np.inf
    # Most likely first; stable, so that equal scores always stand in the same order.
    order = np.argsort(-scores, kind="stable")
    weights = np.exp(scores[order] - scores[order[0]])
    cumulative = np.cumsum(weights)
    if sampling.top_p < 1.0:
        kept = int(np.searchsorted(cumulative, sampling.top_p * cumulative[-1])) + 1
        cumulative = cumulative[:kept]
    # "right" steps over tokens of weight 0; the product can round up to the total itself.
    drawn = int(np.searchsorted(cumulative, random.random() * cumulative[-1], side="right"))
    return int(order[min(drawn, cumulative.size - 1)])
