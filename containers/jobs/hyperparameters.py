"""Reads a training job's hyperparameters.json, in which all values are strings."""

import json
import re
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from containers.serving.json_files import read_object
from containers.serving.predictor import ModelLoadError
from containers.serving.suggestions import nearest_name_hint

HYPERPARAMETERS_FILE: Final = "hyperparameters.json"


class HyperparameterReader:
    """Reads hyperparameters, which SageMaker passes as strings, and collects the `problems`."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self.problems: list[str] = []

    @classmethod
    def open(cls, input_config_dir: Path) -> "HyperparameterReader | str":
        """Reads the file; returns the problem as a string if it cannot be read."""
        path = input_config_dir / HYPERPARAMETERS_FILE
        if not path.exists():
            return f"{path} is missing: start the job with HyperParameters"
        try:
            return cls(read_object(path))
        except ModelLoadError as error:
            return str(error)

    def has(self, name: str) -> bool:
        return name in self._document

    def text(
        self, name: str, allowed: re.Pattern[str], expectation: str, default: str | None = None
    ) -> str:
        """Returns a value that `allowed` matches in full; an empty string after a problem.

        `expectation` says in the problem's message which values are allowed. Without a default the
        job must set a value.
        """
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

    def choice(self, name: str, allowed: Collection[str], default: str | None = None) -> str:
        """Returns one of the allowed values, which a problem lists in this order; see `text`."""
        pattern = re.compile("|".join(re.escape(value) for value in allowed))
        return self.text(name, pattern, f"one of {', '.join(allowed)}", default)

    def whole_number(self, name: str, maximum: int) -> int:
        """Returns a number from 1 to `maximum`; 1 after a problem."""
        expectation = f"a whole number from 1 to {maximum}"
        # [0-9] and not \d, which takes digits of other scripts.
        text = self.text(name, re.compile("[0-9]{1,18}"), expectation)
        if text and not 1 <= int(text) <= maximum:
            self.problems.append(f"hyperparameter {name}={json.dumps(text)} is not {expectation}")
        return int(text or 1)

    # Any: a dataclass.
    def finish(self, hyperparameters: Any) -> list[str]:
        """Returns all problems; a hyperparameter that is no field of the dataclass is one too."""
        names = [field.name for field in fields(hyperparameters)]
        return self.problems + [
            f"hyperparameter {name} is unknown{nearest_name_hint(name, names)}"
            for name in self._document
            if name not in names
        ]
