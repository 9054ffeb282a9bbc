"""The Dockerfiles' steps that download, with mirrors and without, on stand-ins for programs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

CONTAINERS = Path(__file__).parents[2] / "containers"
STAND_IN = """\
#!{python}
import json, os, sys
names = ("SSL_CERT_FILE", "UV_DEFAULT_INDEX", "UV_PYTHON_INSTALL_MIRROR")
seen = {{name: os.environ[name] for name in names if os.environ.get(name)}}
with open(os.environ["CALLS"], "a", encoding="utf-8") as calls:
    calls.write(json.dumps([os.path.basename(sys.argv[0]), sys.argv[1:], seen]) + "\\n")
"""
MIRRORS = {
    "UV_DEFAULT_INDEX": "https://mirror.example.com/simple",
    "UV_PYTHON_INSTALL_MIRROR": "https://mirror.example.com/python",
}
NEURON_BASE = "registry/pytorch-inference-neuron:1.13.1"


def steps(family: str, stage: str) -> tuple[list[str], dict[str, str]]:
    """One stage's RUN instructions that download, and the defaults of its arguments."""
    text = (CONTAINERS / family / "Dockerfile").read_text("utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    found, defaults, is_in_it = [], {}, False
    for line in lines.replace("\\\n", " ").splitlines():
        name, _, arguments = line.partition(" ")
        if name == "FROM":
            is_in_it = arguments.endswith(f" AS {stage}")
        elif is_in_it and name == "ARG" and "=" in arguments:
            key, _, value = arguments.partition("=")
            defaults[key] = value
        elif is_in_it and name == "RUN" and " install " in arguments:
            found.append(arguments)
    return found, defaults


Call = tuple[str, list[str], dict[str, str]]


def run(tmp_path: Path, family: str, stage: str, *, is_mirrored: bool) -> list[Call]:
    """Runs a stage's downloads; returns every call of pip and uv and the mirrors that it saw."""
    (script,), variables = steps(family, stage)
    script = re.sub(r"^(--mount=\S+\s+)+", "", script)
    # BuildKit mounts the secret here, where the build has one.
    secret = tmp_path / "ca_bundle"
    if is_mirrored:
        secret.touch()
        variables = {**variables, **MIRRORS, "NEURON_INDEX": "https://mirror.example.com/neuron"}
    script = re.sub(r"(?<=[\s\"])/(build|opt|tmp)/", rf"{tmp_path}/\1/", script)
    script = script.replace("/run/secrets/ca_bundle", str(secret))
    for program in ("bin/python3", "bin/ln", "bin/rm", "build/uv/bin/uv"):
        path = tmp_path / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STAND_IN.format(python=sys.executable))
        path.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    base = NEURON_BASE if family == "neuron" else "nvcr.io/nvidia/tensorrt:25.09-py3"
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        env={
            **variables,
            "PATH": str(tmp_path / "bin"),
            "CALLS": str(tmp_path / "calls"),
            "BASE_IMAGE": base,
        },
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text("utf-8").splitlines()]
    return [call for call in calls if "install" in call[1]]


STAGES = [("tensorrt", "program"), ("tensorrt", "compiling"),
          ("neuron", "program"), ("neuron", "compiling")]  # fmt: skip


@pytest.mark.parametrize(("family", "stage"), STAGES)
def test_every_download_goes_to_the_mirrors(tmp_path: Path, family: str, stage: str):
    calls = run(tmp_path, family, stage, is_mirrored=True)
    assert calls
    for program, arguments, seen in calls:
        assert seen == {"SSL_CERT_FILE": str(tmp_path / "ca_bundle"), **MIRRORS}
        if program == "python3":
            # pip runs isolated: it takes no variables.
            index = arguments.index("--index-url")
            assert arguments[index + 1] == MIRRORS["UV_DEFAULT_INDEX"]
            assert arguments[arguments.index("--cert") + 1] == str(tmp_path / "ca_bundle")


@pytest.mark.parametrize(("family", "stage"), STAGES)
def test_without_mirrors_they_go_to_the_public_places(tmp_path: Path, family: str, stage: str):
    for _program, arguments, seen in run(tmp_path, family, stage, is_mirrored=False):
        assert seen == {}
        assert not {"--index-url", "--cert"} & set(arguments)


@pytest.mark.parametrize(
    ("is_mirrored", "index"),
    [
        (True, "https://mirror.example.com/neuron"),
        (False, "https://pip.repos.neuron.amazonaws.com"),
    ],
)
def test_neurons_own_index_has_a_mirror_too(tmp_path: Path, is_mirrored: bool, index: str):
    [(program, arguments, seen)] = run(tmp_path, "neuron", "compiler", is_mirrored=is_mirrored)
    assert program == "uv"
    assert arguments[arguments.index("--index") + 1] == index
    assert seen == (
        {"SSL_CERT_FILE": str(tmp_path / "ca_bundle"), **MIRRORS} if is_mirrored else {}
    )


@pytest.mark.parametrize(("family", "stage"), [*STAGES, ("neuron", "compiler")])
def test_every_stage_that_downloads_declares_what_it_is_told(family: str, stage: str):
    """A build argument reaches the steps of the stages that declare it, and of those on top."""
    text = (CONTAINERS / family / "Dockerfile").read_text("utf-8")
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]
    bodies = {body.splitlines()[0].rpartition(" AS ")[2]: body for body in stages}
    body = bodies[stage]
    if body.startswith("program AS"):
        body = bodies["program"]
    assert "\nARG UV_DEFAULT_INDEX\n" in body
