"""An image's tag changes with its sources and with nothing else."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.image_sources import (
    SOURCES_FOLDER,
    copy_image_files,
    image_digest,
    image_files,
    link_sources,
)
from tests.support.projects import refusal, write_project


@pytest.fixture
def root(tmp_path):
    return write_project(tmp_path, {})


def test_files_are_in_a_fixed_order_and_the_fingerprint_changes_with_a_byte_or_a_name(root):
    assert list(image_files(root, "tensorrt")) == [
        "containers/__init__.py",
        "containers/encoders/__init__.py",
        "containers/encoders/main.py",
        "containers/jobs/__init__.py",
        "containers/jobs/main.py",
        "containers/serving/__init__.py",
        "containers/serving/main.py",
        "containers/tensorrt/Dockerfile",
        "containers/tensorrt/__init__.py",
        "containers/tensorrt/__main__.py",
        "containers/tensorrt/main.py",
    ]
    before = image_digest(root, "tensorrt")
    assert re.fullmatch("[0-9a-f]{16}", before)
    source = root / "containers" / "serving" / "main.py"
    source.write_bytes(source.read_bytes() + b"\n")
    changed = image_digest(root, "tensorrt")
    source.rename(source.with_name("other.py"))
    assert len({before, changed, image_digest(root, "tensorrt")}) == 3


def test_times_caches_places_and_other_folders_do_not_count(root, tmp_path_factory):
    before = image_digest(root, "tensorrt")
    os.utime(root / "containers" / "serving" / "main.py", (1, 1))
    cache = root / "containers" / "serving" / "__pycache__" / "main.cpython-311.pyc"
    cache.parent.mkdir()
    cache.write_bytes(b"compiled")
    (root / "containers" / "triton" / "other.py").touch()
    assert image_digest(root, "tensorrt") == before
    other = write_project(tmp_path_factory.mktemp("elsewhere"), {})
    assert image_digest(other, "tensorrt") == image_digest(root, "tensorrt")


def test_what_is_in_no_image_does_not_count(root):
    before = image_digest(root, "tensorrt")
    for name in (
        "serving/.main.py.swp",
        "tensorrt/.DS_Store",
        "tensorrt/.ruff_cache/0",
        "tensorrt/requirements.in",
        "tensorrt/requirements-compile.in",
    ):
        path = root / "containers" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
        assert image_digest(root, "tensorrt") == before, name
    path.rename(root / "containers" / "serving" / "visible.py")
    assert image_digest(root, "tensorrt") != before


def test_the_files_are_copied_with_their_paths_and_nothing_else(root, tmp_path_factory):
    cache = root / "containers" / "serving" / "__pycache__" / "main.pyc"
    cache.parent.mkdir()
    cache.touch()
    copy = tmp_path_factory.mktemp("copy")
    copy_image_files(root, "tensorrt", copy)
    copied = sorted(path for path in copy.rglob("*") if path.is_file())
    assert copied == sorted(image_files(copy, "tensorrt").values())
    assert image_digest(copy, "tensorrt") == image_digest(root, "tensorrt")


def test_lmis_image_is_the_handler_and_how_it_is_built():
    root = Path(__file__).parents[2]
    found = list(image_files(root, "lmi"))
    assert found[0] == "containers/lmi/Dockerfile"
    assert "containers/lmi/handler/slipway_deepspeed.py" in found
    assert all(path.startswith("containers/lmi/handler/") for path in found[1:])
    assert all(path.endswith(".py") for path in found[1:])


@pytest.mark.parametrize("source", ["containers/serving", "containers/tensorrt"])
def test_a_projects_own_folder_comes_before_slipways(root, source):
    shutil.rmtree(root / "containers")
    plain = image_files(root, "tensorrt")
    assert all(path.is_relative_to(SOURCES_FOLDER) for path in plain.values())
    shutil.copytree(SOURCES_FOLDER / source, root / source)
    assert image_digest(root, "tensorrt") == image_digest(root / "nowhere", "tensorrt")
    (root / source / "own.py").touch()
    found = image_files(root, "tensorrt")
    assert set(found) - set(plain) == {f"{source}/own.py"}
    assert {name for name, path in found.items() if path.is_relative_to(root)} == {
        name for name in found if name.startswith(f"{source}/")
    }


def test_programs_run_from_the_projects_own_folders_and_from_slipways(root, tmp_path_factory):
    shutil.rmtree(root / "containers")
    links = tmp_path_factory.mktemp("links") / "sources"
    assert link_sources(root, links) == SOURCES_FOLDER
    shutil.copytree(SOURCES_FOLDER / "containers/serving", root / "containers/serving")
    assert link_sources(root, links) == link_sources(root, links) == links
    code = "import containers.serving, containers.tensorrt as t; print(containers.serving.__file__)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(links)},
        cwd=links,
        check=True,
        capture_output=True,
        text=True,
    )
    assert Path(run.stdout.strip()).resolve() == root / "containers/serving/__init__.py"


@pytest.mark.parametrize("name", ["Dockerfile", "__init__.py", "__main__.py"])
def test_a_folder_that_replaces_slipways_and_lacks_a_file_is_refused(root, name):
    (root / "containers" / "tensorrt" / name).unlink()
    assert str(refusal(image_digest, root, "tensorrt")) == (
        f"1 problem\n- containers/tensorrt of this project replaces Slipway's, and lacks {name} "
        f"[SW414]\n    Copy it from {SOURCES_FOLDER}/containers/tensorrt, or remove "
        f"{root}/containers/tensorrt."
    )
