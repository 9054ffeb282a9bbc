"""The directories of a training job. This module keeps to Python 3.10."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from containers.serving.settings import EnvironmentReader, directory

if TYPE_CHECKING:
    from typing import Self

_ROOT: Final = Path("/opt/ml")


@dataclass(frozen=True)
class JobPaths:
    """The directories of a training job; on other machines, variables replace SageMaker's paths."""

    weights: Path = directory(  # noqa: RUF009  (makes a field)
        "SM_CHANNEL_WEIGHTS",
        _ROOT / "input" / "data" / "weights",
        "The input channel `weights`, a checkpoint.",
    )
    input_config: Path = directory(  # noqa: RUF009
        "SM_INPUT_CONFIG_DIR", _ROOT / "input" / "config", "Holds hyperparameters.json."
    )
    model: Path = directory(  # noqa: RUF009
        "SM_MODEL_DIR", _ROOT / "model", "Receives the model directory."
    )
    output: Path = directory(  # noqa: RUF009
        "SM_OUTPUT_DIR", _ROOT / "output", "Receives the file `failure`."
    )

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> tuple[Self, list[str]]:
        """Returns the paths, and the problems with the variables that name them."""
        reader = EnvironmentReader(environ)
        return reader.settings(cls), reader.problems
