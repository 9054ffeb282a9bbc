"""The directories of a training job. This module keeps to Python 3.10."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Self

_ROOT: Final = Path("/opt/ml")


@dataclass(frozen=True)
class JobPaths:
    """The directories of a training job; on other machines, variables replace SageMaker's paths.

    Attributes:
        weights: the input channel `weights`, a checkpoint (`SM_CHANNEL_WEIGHTS`).
        input_config: holds hyperparameters.json (`SM_INPUT_CONFIG_DIR`).
        model: receives the model directory (`SM_MODEL_DIR`).
        output: receives the file `failure` (`SM_OUTPUT_DIR`).
    """

    weights: Path = _ROOT / "input" / "data" / "weights"
    input_config: Path = _ROOT / "input" / "config"
    model: Path = _ROOT / "model"
    output: Path = _ROOT / "output"

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> tuple[Self, list[str]]:
        problems: list[str] = []

        def directory(variable: str, default: Path) -> Path:
            value = environ.get(variable)
            if value is not None and not value.strip():
                problems.append(f"{variable} is empty: unset it for the default, {default}")
            return Path(value) if value and value.strip() else default

        default = cls()
        paths = cls(
            weights=directory("SM_CHANNEL_WEIGHTS", default.weights),
            input_config=directory("SM_INPUT_CONFIG_DIR", default.input_config),
            model=directory("SM_MODEL_DIR", default.model),
            output=directory("SM_OUTPUT_DIR", default.output),
        )
        return paths, problems
