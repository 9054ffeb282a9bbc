"""The image: its Dockerfile, what it copies and installs."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from slipway.facts.images import image
from slipway.facts.neuron.drivers import newest_neuron_version
from slipway.planning.families.neuron.hardware import NEURON_BASES
from slipway.stacks.image_stack import COMPILER_TARGET, SERVING_TARGET
from tests.support import dockerfiles

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "containers" / "neuron"
# Of the base: with another NumPy or PyTorch its torch-neuron would not run.
OF_THE_BASE = ("numpy", "torch", "torch-neuron", "torch-neuronx", "neuron-cc", "neuronx-cc")


def stage(target):
    """One stage's instructions; of those that it has several times, the last."""
    return dict(dockerfiles.stage("neuron", target))


def test_the_compiler_runs_the_same_program_with_a_python_of_its_own():
    serving, compiler = stage(SERVING_TARGET), stage(COMPILER_TARGET)
    for name in ("ENTRYPOINT", "STOPSIGNAL", "FROM"):
        assert compiler[name].split(" AS ")[0] == serving[name].split(" AS ")[0]
    assert json.loads(compiler["CMD"]) == ["compile"]
    variables = dict(item.split("=") for item in shlex.split(compiler["ENV"]))
    assert variables == {
        "PYTHONPATH": "/opt/slipway/program",
        "SLIPWAY_WORKER_PYTHON": "/opt/slipway/compiler/bin/python",
    }
    # On the base's Python, whose packages it sees.
    making = stage("compiling")["RUN"]
    assert "python3 -m venv --without-pip --system-site-packages /opt/slipway/compiler" in making
    assert "uv pip install --python /opt/slipway/compiler " in making
    assert compiler["COPY"] == "--from=compiling /opt/slipway /opt/slipway"


@pytest.mark.parametrize("framework", NEURON_BASES.values())
def test_each_base_has_its_requirements(framework):
    """Found as the Dockerfile finds them, by the name of the base's repository."""
    base = image(framework, newest_neuron_version(framework), "us-east-1")
    making = stage("compiling")["RUN"]
    assert 'repository="${BASE_IMAGE##*/}"' in making
    assert '"/build/requirements-${repository%%:*}.txt"' in making
    done = subprocess.run(
        ["sh", "-c", 'repository="${BASE_IMAGE##*/}"; echo "requirements-${repository%%:*}.txt"'],
        env={"BASE_IMAGE": str(base.uri)},
        capture_output=True,
        text=True,
        check=True,
    )
    path = FOLDER / done.stdout.strip()
    text = path.read_text("utf-8")
    pins = dict(re.findall(r"^(\S+)==(\S+) \\$", text, re.M))
    assert set(pins) >= {"transformers", "safetensors", "tokenizers", "huggingface-hub"}
    assert set(pins).isdisjoint(OF_THE_BASE)
    assert text.count("--hash=sha256:") >= len(pins)
    wanted = dict(re.findall(r"^(\S+)==(\S+)$", path.with_suffix(".in").read_text("utf-8"), re.M))
    assert wanted["transformers"] == pins["transformers"]
    # Of the generation that the base's PyTorch runs.
    assert pins["transformers"].startswith("4.")
