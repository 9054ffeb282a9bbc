"""Small real models for the real server, and what transformers itself generates with them."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.containers.lmi.real import servers


@dataclass(frozen=True)
class Call:
    """A call of transformers' `generate`.

    Attributes:
        prompts: computed together.
        dtype: PyTorch's name of the weights' precision.
        arguments: of `generate`, and `seed` for PyTorch's.
    """

    prompts: tuple[str, ...]
    dtype: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Reference:
    """A model.

    Attributes:
        weights: the files of the checkpoint.
        texts: what transformers generates, by the name of the call.
    """

    weights: Mapping[str, bytes]
    texts: Mapping[str, list[str]]


def reference(kind: Literal["t5", "gptj"], directory: Path, calls: Mapping[str, Call]) -> Reference:
    """Makes a small model with random weights and lets transformers generate with it.

    Args:
        kind: of the model.
        directory: an empty one.
        calls: what to generate, by a name.
    """
    program = "tests.containers.lmi.real.small_models"
    checkpoint, texts = directory / "checkpoint", directory / "texts.json"
    finished = subprocess.run(
        [servers.PYTHON, "-m", program, kind, str(checkpoint), str(texts)],
        input=json.dumps(
            [vars(call) | {"arguments": dict(call.arguments)} for call in calls.values()]
        ),
        capture_output=True,
        text=True,
        check=False,
        cwd=servers.ROOT,
        env={**os.environ, "PYTHONPATH": str(servers.ROOT)},
    )
    assert finished.returncode == 0, finished.stderr
    return Reference(
        weights={path.name: path.read_bytes() for path in checkpoint.iterdir()},
        texts=dict(zip(calls, json.loads(texts.read_text("utf-8")), strict=True)),
    )
