"""The Dockerfiles' steps that download, with mirrors and without, on stand-ins for programs."""

import json
import re
import subprocess
import sys

import pytest

from tests.support import dockerfiles

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
NEURON_MIRROR = "https://mirror.example.com/neuron"
NEURON_BASE = "registry/pytorch-inference-neuron:1.13.1"


def run(tmp_path, family, stage, *, is_mirrored):
    """Runs a stage's downloads; returns every call of pip and uv and the mirrors that it saw."""
    found = dockerfiles.stage(family, stage)
    variables = dict(text.split("=", 1) for name, text in found if name == "ARG" and "=" in text)
    (script,) = (text for name, text in found if name == "RUN" and " install " in text)
    script = re.sub(r"^(--mount=\S+\s+)+", "", script)
    # BuildKit mounts the secret here, where the build has one.
    secret = tmp_path / "ca_bundle"
    if is_mirrored:
        secret.touch()
        variables = {**variables, **MIRRORS, "NEURON_INDEX": NEURON_MIRROR}
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


STAGES = [
    *(("tensorrt", stage) for stage in ("program", "compiling")),
    *(("neuron", stage) for stage in ("program", "compiling", "compiler")),
]


@pytest.mark.parametrize("is_mirrored", [True, False])
@pytest.mark.parametrize(("family", "stage"), STAGES)
def test_every_download_goes_to_the_mirrors_or_else_to_the_public_places(
    tmp_path, family, stage, is_mirrored
):
    calls = run(tmp_path, family, stage, is_mirrored=is_mirrored)
    assert calls
    bundle = str(tmp_path / "ca_bundle")
    for program, arguments, seen in calls:
        assert seen == ({"SSL_CERT_FILE": bundle, **MIRRORS} if is_mirrored else {})
        if program == "python3" and is_mirrored:
            # pip runs isolated: it takes no variables.
            assert arguments[arguments.index("--index-url") + 1] == MIRRORS["UV_DEFAULT_INDEX"]
            assert arguments[arguments.index("--cert") + 1] == bundle
        assert is_mirrored or not {"--index-url", "--cert"} & set(arguments)
    if stage == "compiler":
        # Neuron's own index has a mirror too.
        [(program, arguments, _)] = calls
        index = NEURON_MIRROR if is_mirrored else "https://pip.repos.neuron.amazonaws.com"
        assert (program, arguments[arguments.index("--index") + 1]) == ("uv", index)


@pytest.mark.parametrize(("family", "stage"), STAGES)
def test_every_stage_that_downloads_declares_what_it_is_told(family, stage):
    """A build argument reaches the steps of the stages that declare it, and of those on top."""
    found = dockerfiles.stage(family, stage)
    if found[0][1].startswith("program AS"):
        found = dockerfiles.stage(family, "program")
    assert ("ARG", "UV_DEFAULT_INDEX") in found
