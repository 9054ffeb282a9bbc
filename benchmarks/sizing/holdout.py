"""Which pairs of model and instance type are held out: by a seed that was written down first."""

import random
from collections.abc import Mapping

SEED = 47
PART = 3
"""One pair in so many is held out."""

Pair = tuple[str, str]
"""A model and an instance type."""


def held_out(gpus: Mapping[Pair, str]) -> frozenset[Pair]:
    """Returns the pairs that no constant is fitted to, a third of all; each has its GPU in `gpus`.

    A pair stays if it is the last one with its GPU, because nothing would be known of that GPU.
    """
    pairs = sorted(gpus)
    random.Random(SEED).shuffle(pairs)  # noqa: S311  # no secret
    held: set[Pair] = set()
    for pair in pairs:
        rest = [gpus[each] for each in gpus if each not in held and each != pair]
        if len(held) < len(pairs) // PART and gpus[pair] in rest:
            held.add(pair)
    return frozenset(held)
