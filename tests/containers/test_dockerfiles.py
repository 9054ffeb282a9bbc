"""What every Dockerfile of the containers, its files and its locks must pass."""

import re
import subprocess
import sys
from pathlib import Path

import pathspec
import pytest

from slipway.image_sources import IMAGE_SOURCES, image_files
from tests.support.dockerfiles import CONTAINERS, instructions
from tests.support.locks import lines

ROOT = CONTAINERS.parent
FAMILIES = ["lmi", "neuron", "tensorrt", "triton"]
LOCKS = sorted(CONTAINERS.glob("*/requirements*.txt"))
PIN = re.compile(r"[a-z0-9.-]+==[0-9a-z.]+( +--hash=sha256:[0-9a-f]{64})+")


@pytest.mark.parametrize("family", FAMILIES)
def test_hadolint_finds_nothing(family):
    done = subprocess.run(
        [Path(sys.executable).parent / "hadolint", CONTAINERS / family / "Dockerfile"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_copied_is_the_images_sources(family):
    copied = {
        source
        for name, arguments in instructions(family)
        if name == "COPY" and not arguments.startswith("--from")
        for source in arguments.split()[:-1]
    }
    # A source that is not copied would change the tag and not the image.
    assert set(IMAGE_SOURCES[family]) - {f"containers/{family}/Dockerfile"} <= copied
    sources = image_files(ROOT, family)
    for source in copied:
        assert any(f"{file}/".startswith(f"{source}/") for file in sources), source


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_wheel_has_a_hash(lock):
    for line in "\n".join(lines(lock)).replace("\\\n", "").splitlines():
        assert PIN.fullmatch(line), line


@pytest.fixture(scope="module")
def ignored():
    # Docker's patterns are not Git's, but these mean the same in both.
    return pathspec.GitIgnoreSpec.from_lines((ROOT / ".dockerignore").read_text().splitlines())


@pytest.mark.parametrize("family", IMAGE_SOURCES)
def test_a_build_by_hand_copies_what_the_image_stack_copies(family, ignored):
    sent = {
        path.relative_to(ROOT).as_posix()
        for source in IMAGE_SOURCES[family]
        for path in ((ROOT / source).rglob("*") if (ROOT / source).is_dir() else [ROOT / source])
        if path.is_file() and not ignored.match_file(path.relative_to(ROOT))
    }
    assert sent == set(image_files(ROOT, family))


def test_a_build_by_hand_sends_nothing_else(ignored):
    for path in (".venv/bin/python", "build/x", "samples/model.onnx", ".git/config", "README.md"):
        assert ignored.match_file(path), path
