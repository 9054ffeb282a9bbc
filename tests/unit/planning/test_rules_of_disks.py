"""Artifacts on disks, downloads that may take longer than they are given, and start-up timeouts."""

from dataclasses import replace
from typing import Any

import pytest

from slipway.config.environments import Environment
from slipway.facts.instances import instance_types
from slipway.planning.advice import Subject, disk_nearly_full, download_may_time_out
from slipway.planning.families import deployment_of
from slipway.planning.plan import ArtifactPlan, PlanWarning
from slipway.planning.rules.sizes import artifact_fits_disk
from slipway.planning.sizes import (
    ASSUMED_DOWNLOAD_GB_PER_SECOND,
    advised_volume_gb,
    download_seconds,
    download_timeout_seconds,
    startup_timeout_seconds,
)
from tests.support.projects import DIGEST, LOCAL, PRODUCTION, model_config
from tests.unit.planning.models import lmi, weights
from tests.unit.planning.rule_findings import findings, on, only

FIELD = "endpoint.instances[0]"


def misfits(environment: Environment = PRODUCTION, **sections: Any) -> Any:
    return findings(artifact_fits_disk, environment, **sections)


class TestDisk:
    def test_artifact_fits_disk(self):
        assert only(misfits(endpoint=on("ml.p3.2xlarge"), artifacts=weights(44.5))) == (
            FIELD,
            "the artifact of 44.5 GB does not fit on the volume of ml.p3.2xlarge, which has "
            "30 GB: SageMaker's default is 30",
            "Set `volume_size_gb: 56`.",
        )
        assert misfits(endpoint=on("ml.p3.2xlarge"), artifacts=weights(30)) == []
        endpoint = on("ml.p3.2xlarge") | {"volume_size_gb": 40}
        assert only(misfits(endpoint=endpoint, artifacts=weights(44.5))) == (
            "endpoint.volume_size_gb",
            "the artifact of 44.5 GB does not fit on the volume of ml.p3.2xlarge, which has 40 GB",
            "Set `volume_size_gb: 56`.",
        )
        endpoint["volume_size_gb"] = 45
        assert misfits(endpoint=endpoint, artifacts=weights(44.5)) == []
        endpoint = on("ml.p3.2xlarge") | {"volume_size_gb": 512}
        ((_, _, remedy),) = misfits(endpoint=endpoint, artifacts=weights(700.2))
        assert remedy == (
            "Choose an instance type with a local NVMe disk of 701 GB or more: a volume has 512 "
            "GB at most."
        )
        assert advised_volume_gb(500) == 512
        assert advised_volume_gb(44.5) == 56
        assert only(misfits(artifacts=weights(300))) == (
            FIELD,
            "the artifact of 300 GB does not fit on the local NVMe disk of ml.g4dn.xlarge, "
            "which has 125 GB",
            "Choose an instance type with a larger local disk, for example `ml.g4dn.8xlarge` "
            "with 900 GB.",
        )
        assert misfits(artifacts=weights(125)) == []
        ((_, _, remedy),) = misfits(artifacts=weights(2000))
        assert remedy == "Choose an instance type with a larger local disk."

    def test_the_remedys_example_is_as_it_says(self):
        assert instance_types()["ml.g4dn.8xlarge"].local_nvme_gb == 900

    def test_every_variants_volume_is_checked(self):
        variants = [
            {"name": "a", "weight": 1},
            {"name": "b", "weight": 1, "instances": ["ml.p3.2xlarge"]},
        ]
        found = misfits(endpoint={"variants": variants}, artifacts=weights(44.5))
        assert [field for field, _, _ in found] == ["endpoint.variants[1].instances[0]"]
        # What is not known is not guessed.
        endpoint = on("ml.p3.2xlarge")
        compiled = weights(600, compile={"instance": "ml.p3.2xlarge"})
        for environment, artifacts in [
            (PRODUCTION, weights(None)),
            (PRODUCTION, compiled),
            (LOCAL, weights(600)),
        ]:
            assert misfits(environment, endpoint=endpoint, artifacts=artifacts) == []


class TestAdvice:
    def warnings(
        self,
        advise: Any,
        *,
        environment: Environment = PRODUCTION,
        published_gb: float | None = None,
        **sections: Any,
    ) -> list[str]:
        published = published_gb is not None
        files = ArtifactPlan(
            "b", DIGEST, int((published_gb or 0) * 1e9), 1, "cpu", published=published
        )
        config = model_config(**sections)
        deployment = deployment_of(config, environment)
        subject = Subject(deployment, files)
        if config.serving.container == "lmi" and environment.artifacts == "release":
            # The model data is a few lines, and the weights lie beside it.
            subject = Subject(deployment, replace(files, size_bytes=500), files)
        found: list[PlanWarning] = list(advise(subject))
        codes = {
            disk_nearly_full: "disk-nearly-full",
            download_may_time_out: "download-may-time-out",
        }
        assert all(item.code == codes[advise] for item in found)
        return [item.message for item in found]

    def test_disk_nearly_full(self):
        assert self.warnings(disk_nearly_full, artifacts=weights(112.5)) == []
        assert self.warnings(disk_nearly_full, artifacts=weights(113)) == [
            "ml.g4dn.xlarge has 125 GB of disk for an artifact of 113.0 GB. Choose a type with a "
            "larger local disk."
        ]
        assert self.warnings(
            disk_nearly_full, artifacts=weights(28), endpoint=on("ml.p3.2xlarge")
        ) == [
            "ml.p3.2xlarge has 30 GB of disk for an artifact of 28.0 GB. Set `volume_size_gb: 35`."
        ]
        largest = on("ml.p3.2xlarge") | {"volume_size_gb": 512}
        assert self.warnings(disk_nearly_full, artifacts=weights(500), endpoint=largest) == [
            "ml.p3.2xlarge has 512 GB of disk for an artifact of 500.0 GB. Choose a type with a "
            "larger local disk."
        ]
        endpoint = on("ml.p3.2xlarge")
        assert self.warnings(disk_nearly_full, published_gb=44.5, endpoint=endpoint) == [
            "ml.p3.2xlarge has 30 GB of disk for an artifact of 44.5 GB. Set `volume_size_gb: 56`."
        ]
        claimed = {"endpoint": endpoint, "artifacts": weights(29)}
        assert self.warnings(disk_nearly_full, published_gb=1, **claimed) == []
        serving = lmi(dtype="fp32")
        found = self.warnings(disk_nearly_full, published_gb=29, serving=serving, **claimed)
        assert len(found) == 1
        assert self.warnings(disk_nearly_full, published_gb=1, serving=serving, **claimed) == []
        # A sample has its weights in the model data.
        assert (
            self.warnings(
                disk_nearly_full, published_gb=0.001, serving=serving, environment=LOCAL, **claimed
            )
            == []
        )

    def test_an_unknown_size_is_not_guessed(self):
        for advise in (disk_nearly_full, download_may_time_out):
            assert self.warnings(advise, artifacts=weights(None)) == []

    def test_download_may_time_out(self):
        # 600 s at 0.085 GB/s are 51 GB.
        assert ASSUMED_DOWNLOAD_GB_PER_SECOND == 0.085
        given = {"model_data_download_timeout_seconds": 600}
        found = self.warnings(download_may_time_out, artifacts=weights(51), endpoint=given)
        assert found == []
        assert self.warnings(download_may_time_out, artifacts=weights(60), endpoint=given) == [
            "60.0 GB take 706 s over one connection to S3 (0.085 GB/s), and "
            "`model_data_download_timeout_seconds` is 600. Set it to 720."
        ]
        longer = {"model_data_download_timeout_seconds": 706}
        assert self.warnings(download_may_time_out, artifacts=weights(60), endpoint=longer) == []
        serving = lmi(dtype="fp32", model_loading_timeout_seconds=700)
        endpoint = {
            "model_data_download_timeout_seconds": 60,
            "container_startup_health_check_timeout_seconds": 600,
        }
        sections = {"serving": serving, "endpoint": endpoint, "artifacts": weights(60)}
        assert self.warnings(download_may_time_out, **sections) == [
            "60.0 GB take 706 s over one connection to S3 (0.085 GB/s), and "
            "`container_startup_health_check_timeout_seconds` is 600. Set it to 720.",
            "60.0 GB take 706 s over one connection to S3 (0.085 GB/s), and "
            "`model_loading_timeout_seconds` is 700. Set it to 720.",
        ]
        long_enough = {
            "serving": serving | {"model_loading_timeout_seconds": 706},
            "endpoint": endpoint | {"container_startup_health_check_timeout_seconds": 706},
        }
        assert self.warnings(download_may_time_out, artifacts=weights(60), **long_enough) == []
        assert len(self.warnings(download_may_time_out, published_gb=52)) == 1
        assert self.warnings(download_may_time_out, published_gb=50) == []

    @pytest.mark.parametrize(("seconds", "count"), [(3599, 1), (3600, 0)])
    def test_a_timeout_at_its_maximum_cannot_be_raised(self, seconds, count):
        endpoint = {"model_data_download_timeout_seconds": seconds}
        found = self.warnings(download_may_time_out, artifacts=weights(1000), endpoint=endpoint)
        assert len(found) == count
        assert all(message.endswith("is 3599. Set it to 3600.") for message in found)
        assert download_seconds(1000) > 3600


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
