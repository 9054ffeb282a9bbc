"""What every Dockerfile of the containers, and every lock that it installs, must pass."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.image_sources import IMAGE_SOURCES, image_files
from tests.support.dockerfiles import CONTAINERS, instructions
from tests.support.locks import lines

FAMILIES = ["lmi", "neuron", "tensorrt", "triton"]
LOCKS = sorted(CONTAINERS.glob("*/requirements*.txt"))
PIN = re.compile(r"[a-z0-9.-]+==[0-9a-z.]+( +--hash=sha256:[0-9a-f]{64})+")


@pytest.mark.parametrize("family", FAMILIES)
def test_hadolint_finds_nothing(family: str):
    done = subprocess.run(
        [Path(sys.executable).parent / "hadolint", CONTAINERS / family / "Dockerfile"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_copied_is_the_images_sources(family: str):
    copied = {
        source
        for name, arguments in instructions(family)
        if name == "COPY" and not arguments.startswith("--from")
        for source in arguments.split()[:-1]
    }
    # A source that is not copied would change the tag and not the image.
    assert set(IMAGE_SOURCES[family]) - {f"containers/{family}/Dockerfile"} <= copied
    sources = image_files(CONTAINERS.parent, family)
    for source in copied:
        assert any(f"{file}/".startswith(f"{source}/") for file in sources), source


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_wheel_has_a_hash(lock: Path):
    for line in "\n".join(lines(lock)).replace("\\\n", "").splitlines():
        assert PIN.fullmatch(line), line
