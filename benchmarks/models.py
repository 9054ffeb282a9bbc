"""The models of a benchmark: each is made once, in a process that may import PyTorch."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from benchmarks.execution import run_timed
from benchmarks.program import ROOT, Say

_MADE = "made.json"


@dataclass(frozen=True)
class Model:
    """A model of a benchmark, by the sizes of its transformer."""

    name: str
    title: str
    layers: int
    width: int
    heads: int
    vocabulary: int
    sample: str | None
    """Folder of a committed model with trained weights; None makes random weights."""
    seconds: float  # least time that each client of a measurement is measured for


def ensure_made(
    model: Model,
    parent: Path,
    seed: int,
    say: Say,
    *,
    maker: str,
    sources: Iterable[Path],
    packages: Iterable[str],
) -> Path:
    """Returns a model's directory, which is made again unless its recipe is unchanged.

    The module `maker` makes it, given the model as JSON, the folder and the seed. The directory
    depends on the files `sources` and on the Python distributions `packages`.
    """
    digest = hashlib.sha256()
    for source in sources:
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    recipe = {
        "model": {name: value for name, value in asdict(model).items() if name != "seconds"},
        "seed": seed,
        "sources": digest.hexdigest(),
        "versions": {package: metadata.version(package) for package in packages},
    }
    folder = parent / f"{model.name}-{seed}"
    made = folder / _MADE
    if not made.is_file() or json.loads(made.read_text("utf-8")) != recipe:
        say(f"making {model.title} in {folder}")
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        arguments = (json.dumps(asdict(model)), str(folder), str(seed))
        run_timed((sys.executable, "-m", maker, *arguments), ROOT, os.environ)
        made.write_text(json.dumps(recipe, indent=2) + "\n", "utf-8")
    return folder
