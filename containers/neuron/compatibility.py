"""Checks that compiled graphs match the container's settings and the workers' packages."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from containers.neuron.lanes import exit_reason
from containers.neuron.manifest import CPU, REMEDY, RUNTIME_PACKAGES, Manifest
from containers.neuron.settings import EncoderSettings
from containers.serving.predictor import ModelLoadError

_VERSIONS_TIMEOUT_SECONDS: Final = 60
# Run by the workers' Python: prints a line for each installed package.
_VERSIONS_PROGRAM: Final = """
import sys
from importlib.metadata import PackageNotFoundError, version
for name in sys.argv[1:]:
    try:
        print(name, version(name))
    except PackageNotFoundError:
        pass
"""


def check_manifest(
    manifest: Manifest,
    settings: EncoderSettings,
    max_batch_size: int,
    installed_versions: Mapping[str, str],
) -> None:
    """Checks that the graphs match the container's settings and run in its versions.

    On the CPU there are no cores, products are not cast, and a batch may be smaller than compiled.
    A sample therefore stands in for a model on any number of cores.

    Args:
        manifest: describes the graphs.
        settings: the container's own; None matches everything.
        max_batch_size: SLIPWAY_MAX_BATCH_SIZE.
        installed_versions: versions of packages in the workers' Python; packages that are not
            installed are absent.

    Raises:
        ModelLoadError: one line with every mismatch.
    """
    cores, dtype, rows = manifest.pipeline_cores, manifest.dtype, manifest.batch_size
    compared: list[tuple[str, object, str, object]] = [
        ("task", manifest.task, "TASK", settings.task),
        ("longest sequence", manifest.buckets[-1], "SEQUENCE_LENGTH", settings.sequence_length),
    ]
    if not manifest.takes_partial_batches or max_batch_size > rows:
        compared.append(("batch_size", rows, "MAX_BATCH_SIZE", max_batch_size))
    if manifest.target != CPU:
        compared.append(("pipeline_cores", cores, "PIPELINE_CORES", settings.pipeline_cores))
        compared.append(("dtype", dtype, "DTYPE", settings.dtype))
    problems = [
        f"its {name} is {built}, and SLIPWAY_{variable} is {asked}"
        for name, built, variable, asked in compared
        if asked not in (None, built)
    ]
    required, _ = RUNTIME_PACKAGES[manifest.runtime]
    for package in manifest.packages:
        built_with, here = manifest.versions.get(package), installed_versions.get(package)
        if here is None and package in required:
            problems.append(f"it needs {package}, which is not installed here")
        elif here is not None and here != built_with:
            problems.append(
                f"it was made with {package} {built_with or 'of an unknown version'}, and this "
                f"container has {here}"
            )
    if problems:
        raise ModelLoadError(
            f"the model compiled for {manifest.target} cannot serve here: {'; '.join(problems)}; "
            f"{REMEDY}"
        )


def installed_versions(python: str, packages: Sequence[str]) -> dict[str, str]:
    """Returns the versions of the packages that an interpreter has, without importing them.

    Raises:
        ModelLoadError: the interpreter cannot be run.
    """
    if not packages:
        return {}
    try:
        done = subprocess.run(  # noqa: S603  (a fixed program, and names of packages)
            [python, "-c", _VERSIONS_PROGRAM, *packages],
            capture_output=True,
            text=True,
            timeout=_VERSIONS_TIMEOUT_SECONDS,
            check=False,
        )
    except OSError as error:
        raise ModelLoadError(
            f"cannot start SLIPWAY_WORKER_PYTHON={python}: {error.strerror}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ModelLoadError(
            f"SLIPWAY_WORKER_PYTHON={python} did not answer within {_VERSIONS_TIMEOUT_SECONDS} "
            "seconds"
        ) from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ModelLoadError(
            f"SLIPWAY_WORKER_PYTHON={python} does not work: "
            f"{said[-1] if said else exit_reason(done.returncode)}"
        )
    pairs = (line.partition(" ") for line in done.stdout.splitlines())
    return {name: version for name, _, version in pairs}
