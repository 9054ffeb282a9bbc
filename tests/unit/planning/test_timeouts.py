"""Start-up timeouts: as given, or long enough for the weights."""

import pytest

from slipway.planning.families import deployment_of
from slipway.planning.sizes import download_timeout_seconds, startup_timeout_seconds
from tests.support.projects import LOCAL, model_config
from tests.unit.planning.models import lmi, weights

NOT_GIVEN = {
    "model_data_download_timeout_seconds": None,
    "container_startup_health_check_timeout_seconds": None,
}


def subject_of(size_gb: float | None, *, endpoint: dict[str, int | None] | None = None, **sections):
    given = endpoint or NOT_GIVEN
    return deployment_of(
        model_config(artifacts=weights(size_gb), endpoint=given, **sections), LOCAL
    )


@pytest.mark.parametrize(
    ("size_gb", "download", "startup"),
    [(None, 600, 600), (0.1, 600, 600), (51, 600, 600), (60, 720, 600), (1000, 3600, 600)],
)
def test_sagemaker_downloads_before_the_container_starts(size_gb, download, startup):
    subject = subject_of(size_gb)
    assert download_timeout_seconds(subject) == download
    assert startup_timeout_seconds(subject) == startup


@pytest.mark.parametrize(
    ("size_gb", "startup"), [(None, 600), (25.5, 600), (25.6, 660), (45, 1080), (200, 3600)]
)
def test_lmi_copies_and_reads_its_weights_while_it_starts(size_gb, startup):
    subject = subject_of(size_gb, serving=lmi(dtype="fp32"))
    # The model data is a file of settings.
    assert download_timeout_seconds(subject) == 600
    assert startup_timeout_seconds(subject) == subject.loading_timeout_seconds == startup


@pytest.mark.parametrize(
    ("size_gb", "download", "startup"),
    [(None, 600, 600), (45, 540, 540), (60, 720, 720), (200, 2400, 2400)],
)
def test_lmi_with_variables_reads_weights_that_sagemaker_downloaded(size_gb, download, startup):
    serving = lmi(dtype="fp32", framework="djl-lmi", version="0.36.0", configuration="environment")
    subject = subject_of(size_gb, serving=serving)
    assert download_timeout_seconds(subject) == max(600, download)
    assert startup_timeout_seconds(subject) == max(600, startup)


def test_what_is_given_counts():
    given = {
        "model_data_download_timeout_seconds": 60,
        "container_startup_health_check_timeout_seconds": 61,
    }
    serving = lmi(dtype="fp32", model_loading_timeout_seconds=59)
    subject = subject_of(45, endpoint=given, serving=serving)
    assert download_timeout_seconds(subject) == 60
    assert startup_timeout_seconds(subject) == 61
    assert subject.loading_timeout_seconds == 59
