"""Checks that compiled graphs match the container's settings and the packages that run them."""

from collections.abc import Mapping

from containers.encoders.manifest import CPU, REMEDY, RUNTIME_PACKAGES, Manifest
from containers.encoders.settings import EncoderSettings
from containers.serving.predictor import ModelLoadError


def check_manifest(
    manifest: Manifest,
    settings: EncoderSettings,
    max_batch_size: int,
    installed_versions: Mapping[str, str],
    pipeline_cores: int | None = None,
) -> None:
    """Checks that the graphs match the container's settings and run in its versions.

    On the CPU there are no cores, products are not cast, and a batch may be smaller than compiled.
    A sample therefore stands in for a model on any number of cores. A setting of None matches
    everything, and packages that are not installed are absent from `installed_versions`. Raises one
    `ModelLoadError` with every mismatch.
    """
    cores, dtype, rows = manifest.pipeline_cores, manifest.dtype, manifest.batch_size
    compared: list[tuple[str, object, str, object]] = [
        ("task", manifest.task, "TASK", settings.task),
        ("longest sequence", manifest.buckets[-1], "SEQUENCE_LENGTH", settings.sequence_length),
    ]
    if not manifest.takes_partial_batches or max_batch_size > rows:
        compared.append(("batch_size", rows, "MAX_BATCH_SIZE", max_batch_size))
    if manifest.target != CPU:
        compared.append(("pipeline_cores", cores, "PIPELINE_CORES", pipeline_cores))
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
