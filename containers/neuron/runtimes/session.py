"""What a worker needs of a runtime."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Inputs = Mapping[str, NDArray[np.int64]]
# Any: float32, or what an operator of the graph made of it.
Outputs = Mapping[str, NDArray[Any]]


class Session(Protocol):
    """Loaded graphs, one for each bucket; may be called by several threads at a time."""

    def run(self, inputs: Inputs) -> Outputs:
        """Computes one batch.

        Args:
            inputs: arrays [rows, columns], with the manifest's names at least. There are as many
                columns as a bucket has, or fewer where `Manifest.takes_any_length`.
        """
