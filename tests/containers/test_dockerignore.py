"""A build by hand, from the project's root, has the files of the image stack's build."""

from pathlib import Path

import pathspec
import pytest

from slipway.image_sources import IMAGE_SOURCES, image_files

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("family", IMAGE_SOURCES)
def test_a_build_by_hand_copies_what_the_image_stack_copies(family: str):
    # Docker's patterns are not Git's, but these mean the same in both.
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    ignored = pathspec.GitIgnoreSpec.from_lines(lines)
    sent = {
        path.relative_to(ROOT).as_posix()
        for source in IMAGE_SOURCES[family]
        for path in ((ROOT / source).rglob("*") if (ROOT / source).is_dir() else [ROOT / source])
        if path.is_file() and not ignored.match_file(path.relative_to(ROOT))
    }
    assert sent == set(image_files(ROOT, family))


def test_a_build_by_hand_sends_nothing_else():
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    ignored = pathspec.GitIgnoreSpec.from_lines(lines)
    for path in (".venv/bin/python", "build/x", "samples/model.onnx", ".git/config", "README.md"):
        assert ignored.match_file(path), path
