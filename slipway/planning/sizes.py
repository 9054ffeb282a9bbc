"""How large an artifact is, how much disk there is for it, and how long a start may take.

Sizes are decimal GB. EBS counts in GiB, so a volume holds 7 % more than is said here.
"""

import math
from collections.abc import Iterator

from slipway.config.sections.endpoint import Endpoint
from slipway.facts.instances import InstanceFacts
from slipway.planning.deployment import Deployment

DEFAULT_VOLUME_GB = 30
"""Volume of a type without a local disk where the endpoint config gives no size.

AWS, SageMaker AI Developer Guide, "endpoint parameters for large model inference": above a model of
30 GB on an instance without a local disk, VolumeSizeInGB is to be a little above the model's size.
"""
LARGEST_VOLUME_GB = 512
"""VolumeSizeInGB's maximum (botocore)."""

_HEADROOM = 1.25


def artifact_size_gb(deployment: Deployment) -> float | None:
    """Returns the size of what an instance stores, in GB, as far as the config gives it.

    The precision that weights are stored in is not in the config, so that nothing follows from
    their number. `artifacts.size_gb` is the size of the released weights: not of a sample, and not
    of what is compiled from them.
    """
    artifacts = deployment.config.artifacts
    return artifacts.size_gb if deployment.deploys_release and artifacts.compile is None else None


def disk_gb(endpoint: Endpoint, instance: InstanceFacts) -> int | None:
    """Returns the disk under /opt/ml and /tmp in GB; None if no source says.

    It is the type's local NVMe disk, or its EBS volume. Endpoints mount only those two folders on
    it (AWS, SageMaker AI Developer Guide, "encryption at rest"). AWS's advice on its size counts
    the model alone, and no source says that the container image lies there too. An LMI container
    with a package copies its weights to /tmp.
    """
    if instance.local_nvme_gb is None:
        return None
    return instance.local_nvme_gb or endpoint.volume_size_gb or DEFAULT_VOLUME_GB


def advised_volume_gb(size_gb: float) -> int:
    """Returns a VolumeSizeInGB with a quarter to spare, as far as SageMaker's limit allows."""
    return min(LARGEST_VOLUME_GB, math.ceil(size_gb * _HEADROOM))


def short_timeouts(deployment: Deployment, size_gb: float) -> Iterator[tuple[str, int, int]]:
    """Yields timeouts that a download of that size may pass: field, value, seconds to set.

    SageMaker downloads the model data before it starts the container. A container that copies the
    weights does so while it starts, so that its timeouts count and SageMaker's for the download
    does not.
    A timeout that is at its maximum is not among them: it cannot be raised.
    """
    fields = deployment.timeouts_of_copying or {
        "model_data_download_timeout_seconds": download_timeout_seconds(deployment)
    }
    needed = min(download_seconds(size_gb), LONGEST_TIMEOUT_SECONDS)
    for field, seconds in fields.items():
        if seconds < needed:
            yield field, seconds, advised_timeout_seconds(size_gb)


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
    return math.ceil(size_gb / ASSUMED_DOWNLOAD_GB_PER_SECOND)


def advised_timeout_seconds(size_gb: float) -> int:
    """Returns a timeout of whole minutes for a download, as far as SageMaker's limit allows."""
    minutes = math.ceil(download_seconds(size_gb) / _STEP_SECONDS)
    return min(LONGEST_TIMEOUT_SECONDS, minutes * _STEP_SECONDS)


def _derived(size_gb: float | None) -> int:
    return max(SHORTEST_DERIVED_SECONDS, advised_timeout_seconds(size_gb or 0))
