"""How long a start may take: as configured, or long enough for the weights' size.

Sizes are decimal GB.
"""

import math

from slipway.planning.deployment import Deployment

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

_STEP_SECONDS = 60


def download_timeout_seconds(deployment: Deployment) -> int:
    """Returns how long SageMaker may download the model data."""
    config = deployment.config
    given = config.endpoint.model_data_download_timeout_seconds
    if given is not None:
        return given
    # A container that copies the weights itself is brought a file of settings.
    return _derived(None if deployment.copies_weights else config.artifacts.size_gb)


def startup_timeout_seconds(deployment: Deployment) -> int:
    """Returns how long the container may take until /ping answers 200."""
    config = deployment.config
    given = config.endpoint.container_startup_health_check_timeout_seconds
    if given is not None:
        return given
    return _derived((config.artifacts.size_gb or 0) * deployment.reads_at_start)


def download_seconds(size_gb: float) -> int:
    """Returns how long a download takes at the assumed rate."""
    return math.ceil(size_gb / ASSUMED_DOWNLOAD_GB_PER_SECOND)


def advised_timeout_seconds(size_gb: float) -> int:
    """Returns a timeout of whole minutes for a download, as far as SageMaker's limit allows."""
    minutes = math.ceil(download_seconds(size_gb) / _STEP_SECONDS)
    return min(LONGEST_TIMEOUT_SECONDS, minutes * _STEP_SECONDS)


def _derived(size_gb: float | None) -> int:
    return max(SHORTEST_DERIVED_SECONDS, advised_timeout_seconds(size_gb or 0))
