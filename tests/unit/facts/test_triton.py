"""The table of Triton releases: every image of AWS, and what a base must have."""

import pytest

from slipway.facts.images import image, versions
from slipway.facts.instances import architecture
from slipway.facts.tables import read_table
from slipway.facts.tensorrt.releases import tensorrt_releases
from slipway.facts.triton.releases import (
    TRITON,
    advisories_since,
    reads_nested_json,
    triton_bases,
    triton_releases,
)

ANY_REGION = "us-east-1"


def test_every_image_of_aws_has_a_row_and_the_bases_are_these():
    assert tuple(triton_releases()) == versions(TRITON)
    assert triton_bases() == ("24.09", "25.04", "25.09", "26.05")
    # One of them runs on V100, which TensorRT dropped in 10.5.
    assert triton_releases()["24.09"].tensorrt_version == "10.4.0.26"
    # A TensorRT that no source names stays unknown.
    release = triton_releases()["24.03"]
    assert (release.tensorrt_version, release.is_base) == (None, False)


def test_the_table_names_its_sources_and_advisories_are_those_fixed_later():
    sources = read_table("triton/triton.json")["sources"]
    assert set(sources) >= {"tensorrt", "bindings", "python", "packages"}
    assert all(sources.values())
    counts = [len(advisories_since(version)) for version in triton_releases()]
    assert counts == sorted(counts, reverse=True)
    assert "CVE-2026-47477" in advisories_since("25.09")  # a stack overflow, fixed by 26.05
    assert len(advisories_since("26.05")) == 5
    assert [reads_nested_json(version) for version in ("25.09", "26.05")] == [False, True]


@pytest.mark.parametrize("version", versions(TRITON))
def test_a_base_has_bindings_of_its_tensorrt_and_any_other_release_a_reason(version):
    release = triton_releases()[version]
    if not release.is_base:
        assert (release.bindings, version in triton_bases()) == (None, False)
        assert release.no_base
        return
    facts = image(TRITON, version, ANY_REGION)
    major = facts.cuda_version.partition(".")[0]
    package, _, found = str(release.bindings).partition("==")
    assert package == f"tensorrt-cu{major}-bindings"
    # PyPI names some releases without the last part.
    assert f"{release.tensorrt_version}.".startswith(f"{found}.")
    # The Python in which Triton's Python back end runs, for which the packages are locked.
    assert facts.python_version in {"3.10", "3.12"}


def test_the_images_of_one_month_share_tensorrt_and_cuda():
    by_month = {row.base_image.removesuffix("-py3"): row for row in tensorrt_releases().values()}
    shared = set(by_month) & set(triton_bases())
    assert shared == {"24.09", "25.09"}
    for month in shared:
        triton, tensorrt = triton_releases()[month], by_month[month]
        assert str(triton.tensorrt_version).startswith(f"{tensorrt.version}.")
        facts = image(TRITON, month, ANY_REGION)
        assert facts.cuda_version == tensorrt.cuda_version
        # Triton itself runs on older GPUs than its TensorRT does.
        assert architecture(facts.minimum_compute_capability) <= architecture(
            tensorrt.minimum_compute_capability
        )
