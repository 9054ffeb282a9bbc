"""The licences of the packages in images, from metadata as packages of PyPI have them."""

from typing import Any

import pytest

from tools.images.sbom import read_packages
from tools.installs import InstallError


def package(name: str, *names: str, expression: str | None = None) -> dict[str, Any]:
    return {"name": name, "version": "1.2", "expression": expression, "names": list(names)}


APACHE = "License :: OSI Approved :: Apache Software License"


@pytest.mark.parametrize(
    ("found", "licence"),
    [
        # The expression counts, and not a classifier, which says less.
        (
            package("a", APACHE, expression="Apache-2.0 OR BSD-2-Clause"),
            "Apache-2.0 OR BSD-2-Clause",
        ),
        (package("a", "MPL-2.0 AND MIT"), "MPL-2.0 AND MIT"),
        (package("a", "Apache 2.0", APACHE), "Apache-2.0"),
        (package("a", APACHE), "Apache-2.0"),
        (package("dumb_init", "UNKNOWN"), "MIT"),
        (package("tensorrt_cu13_bindings", "Proprietary"), "LicenseRef-NVIDIA-Proprietary"),
    ],
)
def test_the_licence_of_a_package(found, licence):
    (read,) = read_packages([found])
    assert (read.name, read.version, read.licence) == (found["name"], "1.2", licence)


def test_licences_that_nobody_has_read_are_named_together():
    with pytest.raises(InstallError) as refused:
        read_packages(
            [
                package("silent"),
                package("copied", expression="MIT AND GPL-3.0-only"),
                package("fine", expression="MIT"),
                package("vague", "BSD", "License :: OSI Approved :: BSD License"),
            ]
        )
    assert str(refused.value) == (
        "These licences are not in tools/images/licences.json:\n"
        "copied 1.2: GPL-3.0-only is not allowed\n"
        "silent 1.2: its metadata say nothing\n"
        "vague 1.2: its metadata say BSD | License :: OSI Approved :: BSD License\n"
        "Read the licence of each package, and add it there if Slipway's images may have it."
    )


def test_packages_are_in_the_order_of_their_names():
    found = [package(name, expression="MIT") for name in ("b", "C", "A")]
    assert [each.name for each in read_packages(found)] == ["A", "b", "C"]
