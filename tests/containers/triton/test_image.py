"""The image: its Dockerfile, and what it installs for each base."""

import importlib.metadata
import json
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from slipway.facts.images import image
from slipway.facts.triton.releases import TRITON, triton_bases, triton_releases
from slipway.image_sources import copy_image_files
from slipway.stacks.image_stack import COMPILER_TARGET, SERVING_TARGET
from tests.support import dockerfiles
from tests.support.locks import lines, locked, needed

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "containers" / "triton"
TENSORRT = ROOT / "containers" / "tensorrt"
PYTHONS = ("3.10", "3.12")


def stage(target):
    """One stage's instructions; of those that it has several times, the last."""
    return dict(dockerfiles.stage("triton", target))


def script(target, part):
    """The one command of a stage that contains a text."""
    [found] = [
        text for name, text in dockerfiles.stage("triton", target) if name == "RUN" and part in text
    ]
    return found


# The Dockerfile


def test_the_image_is_built_on_the_base_that_the_build_names():
    found = dockerfiles.instructions("triton")
    # There is no default: AWS's registry is another in each region.
    assert found[0] == ("ARG", "BASE_IMAGE")
    assert [arguments for name, arguments in found if name == "FROM"] == [
        "${BASE_IMAGE} AS program",
        "program AS compiling",
        f"${{BASE_IMAGE}} AS {COMPILER_TARGET}",
        # What a build without a target makes.
        f"${{BASE_IMAGE}} AS {SERVING_TARGET}",
    ]
    # A build argument before the first stage is none of a stage unless it asks for it.
    for target in ("program", "compiling"):
        assert ("ARG", "BASE_IMAGE") in dockerfiles.stage("triton", target)


def test_sagemaker_may_name_the_port_and_load_one_model():
    serving = stage(SERVING_TARGET)
    labels = dict(item.split("=") for item in shlex.split(serving["LABEL"]))
    prefix = "com.amazonaws.sagemaker.capabilities"
    assert labels == {
        f"{prefix}.accept-bind-to-port": "true",
        # AWS's image says true: its own program serves several.
        f"{prefix}.multi-models": "false",
    }
    assert serving["STOPSIGNAL"] == "SIGTERM"
    assert json.loads(serving["CMD"]) == ["serve"]
    # AWS asks for root.
    assert "USER" not in dict(dockerfiles.instructions("triton"))


def test_triton_finds_the_programs_packages_first():
    serving = stage(SERVING_TARGET)
    variables = dict(item.split("=") for item in shlex.split(serving["ENV"]))
    assert variables == {
        "PATH": "/opt/slipway/venv/bin:${PATH}",
        "PYTHONPATH": "/opt/slipway/program",
        # The guard's. Triton listens on loopback.
        "SLIPWAY_BIND_ADDRESS": "0.0.0.0",  # noqa: S104
    }
    making = script("program", "uv pip install")
    # On the base's Python, whose NumPy it sees.
    assert "python3 -m venv --without-pip --system-site-packages /opt/slipway/venv" in making
    assert "uv pip install --python /opt/slipway/venv " in making
    assert serving["COPY"] == "--from=program /opt/slipway /opt/slipway"
    entry_point = json.loads(serving["ENTRYPOINT"])
    assert entry_point == [
        "/opt/slipway/venv/bin/dumb-init",
        "--single-child",
        "--",
        "/opt/slipway/venv/bin/python3",
        "-m",
        "containers.triton.entry_point",
    ]


def test_the_compiler_runs_the_same_program_in_a_python_of_its_own():
    serving, compiler = stage(SERVING_TARGET), stage(COMPILER_TARGET)
    assert compiler["STOPSIGNAL"] == serving["STOPSIGNAL"]
    assert json.loads(compiler["CMD"]) == ["compile"]
    assert compiler["ENV"] == "PYTHONPATH=/opt/slipway/program"
    assert compiler["COPY"] == "--from=compiling /opt/slipway /opt/slipway"
    program, arguments = json.loads(compiler["ENTRYPOINT"])[3:], json.loads(serving["ENTRYPOINT"])
    assert program == ["/opt/slipway/compiler/bin/python", *arguments[4:]]
    making = script("compiling", "uv pip install")
    # Of the same version as in the TensorRT container, whose packages it takes.
    [python] = re.findall(r"uv python install --no-bin (\S+)", making)
    assert f"uv python install --no-bin {python} " in (TENSORRT / "Dockerfile").read_text("utf-8")
    assert f"--python {python} /opt/slipway/compiler" in making
    for name in ("requirements.txt", "requirements-compile.txt"):
        assert f"--requirement /build/{name} " in making
        assert f"containers/tensorrt/{name}" in stage("compiling")["COPY"]


def test_the_images_files_alone_become_the_program(tmp_path):
    program = tmp_path / "program"
    copy_image_files(ROOT, "triton", program)
    # In the place of the server, so that the test needs none.
    (program / "containers" / "triton" / "__main__.py").write_text(
        "import os, sys, containers\nprint(os.getpid(), containers.__file__, *sys.argv[1:])\n"
    )
    entry_point = json.loads(stage(SERVING_TARGET)["ENTRYPOINT"])
    process = subprocess.Popen(
        [sys.executable, *entry_point[4:], *json.loads(stage(SERVING_TARGET)["CMD"])],
        cwd=tmp_path, env={"PYTHONPATH": str(program)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    chosen, printed = process.communicate(timeout=30)[0].splitlines()
    assert json.loads(chosen)["event"] == "cuda_driver_chosen"
    # The same process, so that a signal reaches the program.
    assert printed == f"{process.pid} {program}/containers/__init__.py serve"
    assert process.returncode == 0


# The packages


@pytest.mark.parametrize("version", triton_bases())
def test_each_base_has_its_requirements_and_bindings_of_its_tensorrt(version):
    """Found as the Dockerfile finds them, by the base's Python and by its tag."""
    base = image(TRITON, version, "us-east-1")
    assert base.python_version in PYTHONS
    for target in ("program", "compiling"):
        making = script(target, "uv pip install")
        [by_tag] = re.findall(r'--requirement "(/build/requirements-\$\{[^"]*\}\.txt)"', making)
        done = subprocess.run(
            ["sh", "-c", f'printf %s "{by_tag}"'],
            env={"BASE_IMAGE": str(base.uri)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == f"/build/requirements-{base.tag}.txt"
    making = script("program", "uv pip install")
    [expression] = re.findall(r"version=\"\$\(python3 -c '([^']*)'\)\"", making)
    found = subprocess.run(
        [sys.executable, "-c", expression], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert '--requirement "/build/requirements-python${version}.txt"' in making
    copied = stage("program")["COPY"], *dockerfiles.stage("triton", "program")[2]
    for name in (f"requirements-{base.tag}.txt", f"requirements-python{base.python_version}.txt"):
        assert (FOLDER / name).is_file()
        assert any(f"containers/triton/{name}" in each.split() for each in copied), name
    bindings = locked(FOLDER / f"requirements-{version}-py3.txt")
    package, _, exact = str(triton_releases()[version].bindings).partition("==")
    assert bindings.pop(package) == exact
    # Of the major version before 13, which also runs on the drivers that V100 has; those of the
    # TensorRT container, which the sessions on a GPU were written for.
    ours = locked(TENSORRT / "requirements-25.09-py3.txt")["cuda-bindings"]
    assert bindings.pop("cuda-bindings") == ours
    assert set(bindings) == {"cuda-pathfinder"}


@pytest.mark.parametrize(("target", "folder"), [("program", "venv"), ("compiling", "compiler")])
def test_the_bindings_are_called_as_the_program_imports_them(target, folder):
    [link] = re.findall(r'ln -s tensorrt_bindings "?([^" ]+)', script(target, "ln -s"))
    assert re.fullmatch(rf"/opt/slipway/{folder}/lib/python[^/]+/site-packages/tensorrt", link)


def test_there_are_requirements_of_no_other_base():
    assert {path.name for path in FOLDER.glob("requirements-*.txt")} == {
        *(f"requirements-{version}-py3.txt" for version in triton_bases()),
        *(f"requirements-python{python}.txt" for python in PYTHONS),
    }
    pythons = {image(TRITON, version, "us-east-1").python_version for version in triton_bases()}
    assert pythons == set(PYTHONS)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_is_complete_but_for_numpy(python: str):
    found = locked(FOLDER / f"requirements-python{python}.txt")
    asked = {Requirement(line).name for line in lines(FOLDER / "requirements.in")}
    # Another NumPy than the base's would come before it, and NumPy 2 ends the model's process.
    assert asked - set(found) == {"numpy"}
    for name in found:
        # Packages of the older Python only are none of the project's own environment.
        with suppress(importlib.metadata.PackageNotFoundError):
            assert needed(name, python) <= {*found, "numpy"}, name


def test_the_lock_is_of_the_versions_that_the_real_server_is_tested_with():
    # The guard runs with the project's packages, and the model with those of the server.
    tested = {
        **locked(ROOT / "requirements.txt"),
        **locked(ROOT / "tools" / "triton" / "requirements.txt"),
    }
    found = locked(FOLDER / "requirements-python3.12.txt")
    assert found.pop("dumb-init")
    assert found == {name: tested[name] for name in found}
