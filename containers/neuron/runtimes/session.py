"""The interface of a runtime, as a worker uses it."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Inputs = Mapping[str, NDArray[np.int64]]
# Any: float32, or the type that an operator of the graph returned.
Outputs = Mapping[str, NDArray[Any]]


class Session(Protocol):
    """Loaded graphs, one for each bucket; several threads may call it at a time."""

    def run(self, inputs: Inputs) -> Outputs:
        """Computes one batch.

        Args:
            inputs: arrays [rows, columns], with the manifest's names at least. There are as many
                columns as a bucket has, or fewer if `Manifest.takes_any_length`.
        """
