"""Small real models for the real server, and what transformers itself generates with them."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.containers.lmi.real import servers


@dataclass(frozen=True)
class Call:
    """A call of transformers' `generate` with prompts together, in PyTorch's `dtype`."""

    prompts: tuple[str, ...]
    dtype: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Reference:
    """The files of a checkpoint, and what transformers generates with it, by the call's name."""

    weights: Mapping[str, bytes]
    texts: Mapping[str, list[str]]


def reference(kind, directory, calls):
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
