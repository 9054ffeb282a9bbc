"""The Neuron devices, the packages of the workers' Python, and how a BERT-base is placed on them.

AWS has published figures for each of these layouts.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from containers.neuron.settings import PIPELINE_LANES
from slipway.planning.families.neuron.placement import pipeline_depth

WORKER_PYTHON = "SLIPWAY_WORKER_PYTHON"
# NeuronCores of one device, see slipway/facts/instances.json.
_CORES = {"inf1": 4, "inf2": 2, "trn1": 2}
# EC2 writes the instance type into the first file, and the driver its family into the second.
_TYPE_FILES = (
    "sys/devices/virtual/dmi/id/product_name",
    "sys/devices/virtual/neuron_device/neuron0/info/architecture/instance_type",
)
_VERSIONS = (
    "import importlib.metadata as m, json\n"
    "names = [(d.metadata['Name'], d.version) for d in m.distributions()]\n"
    "print(json.dumps({(n or '').lower().replace('_', '-'): v for n, v in names}))"
)


@dataclass(frozen=True)
class NeuronDevice:
    """The Neuron devices of an instance, whose type is only the family if it states no more."""

    family: str
    instance_type: str
    count: int

    @property
    def cores(self) -> int:
        return self.count * _CORES[self.family]


def find_device(root: Path) -> NeuronDevice:
    """Returns the devices of the machine whose file system begins at `root`."""
    count = len(list((root / "dev").glob("neuron[0-9]*")))
    if not count:
        raise BenchmarkError(
            "there is no /dev/neuron0: use an inf1, inf2 or trn1 instance, and install AWS's "
            "driver aws-neuronx-dkms"
        )
    named = [_text(root / path).lower() for path in _TYPE_FILES]
    for name in named:
        for family in _CORES:
            if name.startswith(family):
                return NeuronDevice(family, name, count)
    raise BenchmarkError(
        f"the machine calls itself {' or '.join(filter(None, named)) or 'nothing'}: use an "
        f"instance of {', '.join(_CORES)}"
    )


def describe(root: Path) -> dict[str, str | int | float | None]:
    device = find_device(root)
    packages = _printed("dpkg-query", "--show", "aws-neuron*") or _printed(
        "rpm", "-qa", "aws-neuron*"
    )
    listed = None
    # Releases from 2.34 on have another form.
    with suppress(ValueError, TypeError, KeyError):
        listed = sum(
            each["nc_count"] for each in json.loads(_printed("neuron-ls", "--json-output"))
        )
    return {
        "family": device.family,
        "instance type": device.instance_type,
        "devices": device.count,
        "NeuronCores": device.cores,
        "NeuronCores that neuron-ls lists": listed,
        "driver": _text(root / "sys/module/neuron/version") or None,
        "AWS's system packages": ", ".join(sorted(" ".join(packages.split("\t")).splitlines()))
        or None,
        "workers' Python": worker_python(),
    }


def worker_python() -> str:
    return os.environ.get(WORKER_PYTHON) or sys.executable


def worker_packages() -> Mapping[str, str]:
    """Returns the versions of the packages in the workers' Python; none if it cannot be run."""
    found: dict[str, str] = json.loads(_printed(worker_python(), "-c", _VERSIONS) or "{}")
    return found


def _text(path: Path) -> str:
    return path.read_text("utf-8").strip() if path.is_file() else ""


def _printed(program: str, *arguments: str) -> str:
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/opt/aws/neuron/bin")
    if path is None:
        return ""
    command = [path, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603


SEQUENCE_LENGTH = 128
DTYPE = "bf16"
_PARAMETERS = 108_893_186

PUBLISHED: Mapping[tuple[str, str], str] = {
    ("inf1.6xlarge", "pipeline"): "1793, p95 6.9 ms (AWS's blog); "
    "2009-2080, p50 5.7-5.9 ms (Neuron SDK 1.17-2.20)",
    ("inf1.6xlarge", "batch-6"): "3880, p95 25.8 ms (AWS's blog)",
    ("inf1.xlarge", "batch-6"): "985, p95 24.9 ms (AWS's blog); "
    "1181, p50 40.6 ms (Neuron SDK 2.20)",
    ("inf2.xlarge", "batch-8"): "2674, p50 6.0 ms (Neuron SDK 2.26-2.27)",
    ("inf2.xlarge", "batch-1"): "1998, p50 1.0 ms (Neuron SDK 2.26-2.27)",
}
"""Sentences per second and latency by instance type and layout, as in benchmarks/neuron.md."""


@dataclass(frozen=True)
class Layout:
    """One way to place copies of the model, whose graph takes a batch of sentences.

    `cores` are the NeuronCores of each copy, and `workers` the copies. The name is its folder's
    too.
    """

    family: str
    name: str
    batch_size: int
    cores: int
    workers: int

    @property
    def loads(self) -> Sequence[tuple[int, int]]:
        """Returns the loads of benchmarks/neuron.md: sentences of a request, and clients."""
        if self.cores > 1:
            return (1, PIPELINE_LANES * self.workers), (1, 1)
        single = (1, self.batch_size * self.workers)
        return (single,) if self.batch_size == 1 else (single, (self.batch_size, self.workers))


def layouts_of(family: str, cores: int) -> Sequence[Layout]:
    """Returns the layouts that a family can have.

    A pipeline takes all cores, up to the number that AWS's formula gives a BERT-base.
    """
    if family == "inf1":
        depth = min(cores, pipeline_depth(_PARAMETERS))
        pipeline = Layout(family, "pipeline", 1, depth, cores // depth)
        return pipeline, Layout(family, "batch-6", 6, 1, cores)
    return tuple(Layout(family, f"batch-{size}", size, 1, cores) for size in (8, 1))
