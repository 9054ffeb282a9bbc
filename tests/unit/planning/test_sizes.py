"""Advised volumes, the time of a download, and the timeouts that follow from the size of files."""

import pytest

from slipway.planning.families import deployment_of
from slipway.planning.sizes import (
    ASSUMED_DOWNLOAD_GB_PER_SECOND,
    advised_volume_gb,
    download_seconds,
    download_timeout_seconds,
    startup_timeout_seconds,
)
from tests.support.projects import LOCAL, model_config
from tests.unit.planning.models import lmi, weights

NOT_GIVEN = {
    "model_data_download_timeout_seconds": None,
    "container_startup_health_check_timeout_seconds": None,
}


def deployment(size_gb: float | None, endpoint: dict[str, int | None] = NOT_GIVEN, **sections):
    config = model_config(artifacts=weights(size_gb), endpoint=endpoint, **sections)
    return deployment_of(config, LOCAL)


def test_a_volume_and_a_download_are_for_the_size():
    assert (advised_volume_gb(44.5), advised_volume_gb(500)) == (56, 512)
    assert ASSUMED_DOWNLOAD_GB_PER_SECOND == 0.085
    assert download_seconds(1000) > 3600


@pytest.mark.parametrize(
    ("size_gb", "download", "startup"),
    [(None, 600, 600), (0.1, 600, 600), (51, 600, 600), (60, 720, 600), (1000, 3600, 600)],
)
def test_sagemaker_downloads_before_the_container_starts(size_gb, download, startup):
    found = deployment(size_gb)
    assert download_timeout_seconds(found) == download
    assert startup_timeout_seconds(found) == startup


@pytest.mark.parametrize(
    ("size_gb", "startup"), [(None, 600), (25.5, 600), (25.6, 660), (45, 1080), (200, 3600)]
)
def test_lmi_copies_and_reads_its_weights_while_it_starts(size_gb, startup):
    found = deployment(size_gb, serving=lmi(dtype="fp32"))
    # The model data is a file of settings.
    assert download_timeout_seconds(found) == 600
    assert startup_timeout_seconds(found) == found.loading_timeout_seconds == startup


@pytest.mark.parametrize(
    ("size_gb", "download", "startup"),
    [(None, 600, 600), (45, 600, 600), (60, 720, 720), (200, 2400, 2400)],
)
def test_lmi_with_variables_reads_weights_that_sagemaker_downloaded(size_gb, download, startup):
    serving = lmi(dtype="fp32", framework="djl-lmi", version="0.36.0", configuration="environment")
    found = deployment(size_gb, serving=serving)
    assert download_timeout_seconds(found) == download
    assert startup_timeout_seconds(found) == startup


def test_what_is_given_counts():
    given = {
        "model_data_download_timeout_seconds": 60,
        "container_startup_health_check_timeout_seconds": 61,
    }
    found = deployment(45, given, serving=lmi(dtype="fp32", model_loading_timeout_seconds=59))
    assert download_timeout_seconds(found) == 60
    assert startup_timeout_seconds(found) == 61
    assert found.loading_timeout_seconds == 59
