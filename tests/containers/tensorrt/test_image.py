"""The image: its Dockerfile, what it installs, and that its files alone serve."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from slipway.facts.tensorrt import tensorrt_releases
from slipway.publishing.image_sources import copy_image_files, image_files

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "containers" / "tensorrt"
PATIENCE_SECONDS = 30
# What the Dockerfile's Python is, for the markers of requirements.
PYTHON = {
    "python_version": "3.12",
    "python_full_version": "3.12.16",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
    "os_name": "posix",
    "extra": "",
}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions and their arguments, continued lines joined."""
    lines = (FOLDER / "Dockerfile").read_text("utf-8").splitlines()
    code = "\n".join(line for line in lines if not line.startswith("#"))
    joined = code.replace("\\\n", " ").splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in joined if line]


def last_stage() -> dict[str, str]:
    found = instructions()
    start = max(number for number, (name, _) in enumerate(found) if name == "FROM")
    return dict(found[start:])


def lint(path: Path) -> list[dict[str, Any]]:
    result = subprocess.run(
        [Path(sys.executable).parent / "hadolint", "--format", "json", path],
        capture_output=True,
        text=True,
    )
    assert result.stderr == ""
    findings: list[dict[str, Any]] = json.loads(result.stdout)
    return findings


def test_hadolint_finds_nothing():
    assert lint(FOLDER / "Dockerfile") == []


def test_hadolint_would_find_something(tmp_path: Path):
    path = tmp_path / "Dockerfile"
    path.write_text("FROM debian\nENTRYPOINT serve\n")
    assert {finding["code"] for finding in lint(path)} == {"DL3006", "DL3025"}


def test_the_default_base_is_the_newest_releases():
    newest = list(tensorrt_releases().values())[-1]
    found = instructions()
    assert found[0] == ("ARG", f"BASE_IMAGE=nvcr.io/nvidia/tensorrt:{newest.base_image}")
    bases = [arguments.split()[0] for name, arguments in found if name == "FROM"]
    assert bases == ["${BASE_IMAGE}", "${BASE_IMAGE}"]


def test_sagemaker_may_name_the_port_and_run_it_as_root():
    stage = last_stage()
    assert stage["LABEL"] == "com.amazonaws.sagemaker.capabilities.accept-bind-to-port=true"
    assert stage["STOPSIGNAL"] == "SIGTERM"
    assert json.loads(stage["CMD"]) == ["serve"]
    # AWS asks for root.
    assert "USER" not in dict(instructions())


def test_what_is_copied_is_among_the_images_sources():
    sources = {path.relative_to(ROOT).as_posix() for path in image_files(ROOT, "tensorrt")}
    copied = [
        source
        for name, arguments in instructions()
        if name == "COPY" and not arguments.startswith("--from")
        for source in arguments.split()[:-1]
    ]
    assert "containers/serving" in copied
    for source in copied:
        assert any(f"{file}/".startswith(f"{source}/") for file in sources), source


def test_the_images_files_alone_serve_as_its_entry_point_says(tmp_path: Path):
    copy_image_files(ROOT, "tensorrt", tmp_path / "opt" / "slipway" / "program")
    stage = last_stage()
    interpreter, *arguments = json.loads(stage["ENTRYPOINT"])
    assert interpreter == "/opt/slipway/venv/bin/python"
    variables = dict(item.split("=") for item in shlex.split(stage["ENV"]))
    assert variables.pop("SLIPWAY_BIND_ADDRESS") == "0.0.0.0"  # noqa: S104  # as SageMaker asks
    program = f"{tmp_path}{variables.pop('PYTHONPATH')}"
    assert variables == {}
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": program,
        "SLIPWAY_BIND_ADDRESS": "127.0.0.1",
        "SAGEMAKER_BIND_TO_PORT": "0",
        "SM_MODEL_DIR": str(ROOT / "samples" / "gpt2-autocomplete" / "model"),
    }
    where = subprocess.run(
        [sys.executable, "-c", "import containers; print(containers.__file__)"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert where.stdout.startswith(program)
    process = subprocess.Popen(
        [sys.executable, *arguments, *json.loads(stage["CMD"])],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        events: list[dict[str, Any]] = [{"event": "started"}]
        while events[-1]["event"] != "model_loaded":
            events.append(json.loads(process.stdout.readline()))
        [port] = [line["port"] for line in events if line["event"] == "listening"]
        answer = httpx.get(
            f"http://127.0.0.1:{port}/ping", timeout=PATIENCE_SECONDS, trust_env=False
        )
        assert answer.status_code == 200
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def third_party_imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    tops = {name.partition(".")[0] for name in names}
    return tops - set(sys.stdlib_module_names) - {"containers"}


def lines(path: Path) -> list[str]:
    return [
        line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")
    ]


def locked() -> dict[str, str]:
    pins = [line.split()[0] for line in lines(FOLDER / "requirements.txt") if "==" in line]
    return dict(pin.split("==") for pin in pins)


def test_it_installs_what_the_program_imports():
    imported = {
        name
        for path in image_files(ROOT, "tensorrt")
        if path.suffix == ".py"
        for name in third_party_imports(path)
    }
    assert imported == set(lines(FOLDER / "requirements.in"))


def test_the_lock_is_complete_and_of_the_versions_that_are_tested():
    tested = {}
    for line in lines(ROOT / "requirements.txt"):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate(PYTHON):
            tested[canonicalize_name(requirement.name)] = str(requirement.specifier)
    found = locked()
    assert {name: f"=={version}" for name, version in found.items()} == {
        name: tested[name] for name in found
    }
    needed = {canonicalize_name(name) for name in lines(FOLDER / "requirements.in")}
    assert needed <= set(found)
    for name in found:
        for text in importlib.metadata.requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate(PYTHON):
                assert canonicalize_name(requirement.name) in found, f"{name} needs {text}"


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-uv.txt"])
def test_every_wheel_has_a_hash(name: str):
    text = "\n".join(lines(FOLDER / name)).replace("\\\n", "")
    for line in text.splitlines():
        assert re.fullmatch(r"[a-z0-9.-]+==[0-9a-z.]+( +--hash=sha256:[0-9a-f]{64})+", line), line
