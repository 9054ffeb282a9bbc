"""How long a start may take: as configured, or long enough for the weights' size.

Sizes are decimal GB.
"""

from __future__ import annotations

import math

from slipway.config.schema import ModelConfig
from slipway.config.sections.serving import LmiServing

ASSUMED_DOWNLOAD_GB_PER_SECOND = 0.085
"""What one connection to S3 gives; an assumption about SageMaker, and a cautious one.

AWS, S3 User Guide, "performance design patterns": one concurrent request for each 85-90 MB/s of
throughput. How many connections SageMaker opens no source says. A model of 40 GB, above which AWS
tells to raise the download timeout (SageMaker AI Developer Guide, "endpoint parameters for large
model inference"), takes 471 s at this rate.
"""
LONGEST_TIMEOUT_SECONDS = 3600
"""Maximum of both of SageMaker's start-up timeouts (botocore), and of DJL Serving's here."""
SHORTEST_DERIVED_SECONDS = 600
"""Of a small model, and where the config gives no size."""

# An LMI container with a package copies the weights, then reads the copy into the accelerators.
_READS_OF_A_COPY = 2
_STEP_SECONDS = 60


def copies_weights(config: ModelConfig) -> bool:
    """Whether the container of a release copies the weights itself, while it starts."""
    return isinstance(config.serving, LmiServing) and config.serving.configuration == "file"


def download_timeout_seconds(config: ModelConfig) -> int:
    """Returns how long SageMaker may download the model data."""
    given = config.endpoint.model_data_download_timeout_seconds
    if given is not None:
        return given
    # LMI's model data is a file of settings, or the weights.
    return _derived(None if copies_weights(config) else config.artifacts.size_gb)


def startup_timeout_seconds(config: ModelConfig) -> int:
    """Returns how long the container may take until /ping answers 200."""
    given = config.endpoint.container_startup_health_check_timeout_seconds
    if given is not None:
        return given
    size_gb = config.artifacts.size_gb
    if not isinstance(config.serving, LmiServing) or size_gb is None:
        return _derived(None)
    return _derived(size_gb * (_READS_OF_A_COPY if copies_weights(config) else 1))


def loading_timeout_seconds(config: ModelConfig) -> int:
    """Returns how long an LMI server lets the model load: as configured, or as long as SageMaker.

    Raises:
        TypeError: it is not served by LMI.
    """
    if not isinstance(config.serving, LmiServing):
        raise TypeError(f"{config.name} is not served by LMI but by {config.serving.container}")
    return config.serving.model_loading_timeout_seconds or startup_timeout_seconds(config)


def download_seconds(size_gb: float) -> int:
    """Returns how long a download takes at the assumed rate."""
    return math.ceil(size_gb / ASSUMED_DOWNLOAD_GB_PER_SECOND)


def advised_timeout_seconds(size_gb: float) -> int:
    """Returns a timeout of whole minutes for a download, as far as SageMaker's limit allows."""
    minutes = math.ceil(download_seconds(size_gb) / _STEP_SECONDS)
    return min(LONGEST_TIMEOUT_SECONDS, minutes * _STEP_SECONDS)


def _derived(size_gb: float | None) -> int:
    return max(SHORTEST_DERIVED_SECONDS, advised_timeout_seconds(size_gb or 0))
