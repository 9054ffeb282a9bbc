"""What a compile job is told: where its directories are, and its hyperparameters."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

from containers.serving.suggestions import nearest_name_hint

HYPERPARAMETERS_FILE: Final = "hyperparameters.json"
CPU_TARGET: Final = "cpu"

_ROOT: Final = Path("/opt/ml")
_TARGET: Final = re.compile(r"cpu|sm[1-9][0-9]{1,2}")
_LARGEST_BATCH: Final = 1024
_MOST_TOKENS: Final = 1_000_000
_NAMES: Final = ("target", "max_batch_size", "max_input_tokens", "max_new_tokens", "keep_graph")


@dataclass(frozen=True)
class JobPaths:
    """The directories of a training job; variables stand in for SageMaker's on other machines.

    Attributes:
        weights: the input channel `weights`, a checkpoint (`SM_CHANNEL_WEIGHTS`).
        input_config: holds hyperparameters.json (`SM_INPUT_CONFIG_DIR`).
        model: where the model directory goes (`SM_MODEL_DIR`).
        output: where `failure` goes (`SM_OUTPUT_DIR`).
    """

    weights: Path = _ROOT / "input" / "data" / "weights"
    input_config: Path = _ROOT / "input" / "config"
    model: Path = _ROOT / "model"
    output: Path = _ROOT / "output"

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> tuple[Self, list[str]]:
        """Returns the paths, and the problems with the variables that name them."""
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


@dataclass(frozen=True)
class Hyperparameters:
    """What to compile for.

    Attributes:
        target: "cpu", an ONNX graph for ONNX Runtime, or a compute capability ("sm86"), an engine
            for that GPU.
        max_batch_size: most sequences that are computed together.
        max_input_tokens: longest prompt.
        max_new_tokens: most tokens generated after it.
        keep_graph: whether the graph that an engine was built from stays beside it; then an engine
            that does not open can be built again.
    """

    target: str
    max_batch_size: int
    max_input_tokens: int
    max_new_tokens: int
    keep_graph: bool = False

    @property
    def precision(self) -> Literal["fp16", "fp32"]:
        """Of weights, cache and logits."""
        return "fp32" if self.target == CPU_TARGET else "fp16"


def read_hyperparameters(input_config_dir: Path) -> tuple[Hyperparameters | None, list[str]]:
    """Reads hyperparameters.json.

    Returns:
        The hyperparameters, and every problem with them; None where there is one.
    """
    path = input_config_dir / HYPERPARAMETERS_FILE
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None, [f"{path} is missing: start the job with HyperParameters"]
    except OSError as error:
        return None, [f"cannot read {path}: {error.strerror}"]
    except (ValueError, RecursionError) as error:
        return None, [f"{path} is not valid JSON: {error}"]
    if not isinstance(document, dict):
        return None, [f"{path} must hold a JSON object"]
    reader = _HyperparameterReader(document)
    target = reader.text("target", _TARGET, 'cpu, or a compute capability such as "sm86"')
    keep_graph = reader.text(
        "keep_graph", re.compile("true|false"), "true or false", default="false"
    )
    read = Hyperparameters(
        target=target,
        max_batch_size=reader.whole_number("max_batch_size", _LARGEST_BATCH),
        max_input_tokens=reader.whole_number("max_input_tokens", _MOST_TOKENS),
        max_new_tokens=reader.whole_number("max_new_tokens", _MOST_TOKENS),
        keep_graph=keep_graph == "true",
    )
    problems = reader.problems + [
        f"hyperparameter {name} is unknown{nearest_name_hint(name, _NAMES)}"
        for name in document
        if name not in _NAMES
    ]
    return (None if problems else read), problems


class _HyperparameterReader:
    """Reads values, all of which SageMaker passes as texts, and collects the problems."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self.problems: list[str] = []

    def text(
        self, name: str, allowed: re.Pattern[str], expectation: str, default: str | None = None
    ) -> str:
        value = self._document.get(name, default)
        if value is None and name not in self._document:
            self.problems.append(f"hyperparameter {name} is missing: it is {expectation}")
        elif not isinstance(value, str) or not allowed.fullmatch(value):
            self.problems.append(
                f"hyperparameter {name}={json.dumps(value)} is not {expectation}"
                if isinstance(value, str)
                else f"hyperparameter {name} must be a text, not {json.dumps(value)}"
            )
        else:
            return value
        return ""

    def whole_number(self, name: str, maximum: int) -> int:
        expectation = f"a whole number from 1 to {maximum}"
        # [0-9] and not \d, which takes digits of other scripts.
        text = self.text(name, re.compile("[0-9]{1,18}"), expectation)
        if text and not 1 <= int(text) <= maximum:
            self.problems.append(f"hyperparameter {name}={json.dumps(text)} is not {expectation}")
        return int(text or 1)
