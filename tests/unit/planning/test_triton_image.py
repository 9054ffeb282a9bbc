"""The bases of Slipway's Triton images, and their tags."""

import pytest

from slipway.facts.images import image, regions, versions
from slipway.facts.triton.releases import TRITON, triton_bases
from slipway.planning.families.triton.deployment import image_bases
from slipway.planning.plan import ImageBase
from tests.support.projects import PRODUCTION


def bases(*names: str, region: str = "eu-west-1") -> list[ImageBase]:
    environment = PRODUCTION.model_copy(update={"region": region})
    return list(image_bases(environment, [(TRITON, name) for name in names]))


def test_an_image_is_built_on_each_base_that_a_config_names():
    assert bases("24.09", "26.05") == [
        ImageBase("triton24.09", f"{registry()}:24.09-py3"),
        ImageBase("triton26.05", f"{registry()}:26.05-py3"),
    ]
    assert bases() == []
    assert all(base.compiles for base in bases(*triton_bases()))
    # Another framework of that version is no base.
    assert list(image_bases(PRODUCTION, [("djl-lmi", "25.09")])) == []


def registry() -> str:
    return str(image(TRITON, "26.05", "eu-west-1").uri).partition(":")[0]


@pytest.mark.parametrize("version", [*versions(TRITON), "25.10"])
def test_only_a_base_of_the_table_is_built_on(version: str):
    assert [base.tag for base in bases(version)] == (
        [f"triton{version}"] if version in triton_bases() else []
    )


def test_a_region_without_the_base_has_no_image_on_it():
    """China has AWS's images up to 25.04, and a region of no table has none."""
    assert [base.tag for base in bases("25.04", "25.09", region="cn-north-1")] == ["triton25.04"]
    assert bases("25.04", region="xx-nowhere-1") == []
    assert set(regions()) >= {"cn-north-1"}
