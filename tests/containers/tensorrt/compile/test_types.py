"""The code that calls TensorRT calls what exists: mypy over it, with types of NVIDIA's bindings."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.groups import load

load("tensorrt_rtx_bindings", group="builder")

pytestmark = pytest.mark.builder

ROOT = Path(__file__).parents[4]
CONTAINERS = ROOT / "containers"
# What calls TensorRT, in both families that run engines.
CALLERS = sorted(
    path
    for path in CONTAINERS.rglob("*.py")
    if re.search(r"^\s*import tensorrt\b", path.read_text(), re.M)
)

CONFIGURATION = """
[mypy]
strict = True
python_version = 3.11
# Errors of what the checked files import are not this test's.
follow_imports = silent
# Some functions of the bindings have no signature.
disallow_untyped_calls = False
mypy_path = {stubs}

[mypy-tensorrt.*]
ignore_errors = True

[mypy-onnxruntime.*,tokenizers.*,torch.*,transformers.*,onnx.*,onnx_ir.*,safetensors.*,cuda.*]
ignore_missing_imports = True
follow_imports = skip
"""


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    """A directory with the package `tensorrt`, as far as TensorRT for RTX has it."""
    directory = tmp_path_factory.mktemp("stubs")
    arguments = ["--inspect-mode", "-p", "tensorrt_rtx_bindings", "-o", str(directory)]
    subprocess.run(
        [sys.executable, "-c", "from mypy.stubgen import main; main()", *arguments],
        check=True,
        capture_output=True,
        timeout=120,
    )
    content = (directory / "tensorrt_rtx_bindings" / "tensorrt_rtx.pyi").read_text()
    # No parameter can be called so in Python, and none can follow one with a default without one.
    content = re.sub(r"\bin: ", "in_: ", content)
    content = content.replace(
        "channel_axis: typing.SupportsInt)", "channel_axis: typing.SupportsInt = ...)"
    )
    # The data type of this name would hide Python's.
    content = re.sub(r"(?<!^)\bbool\b(?!:)", "builtins.bool", content, flags=re.M)
    # What the bindings convert, and iterate, without saying so in a signature.
    content = re.sub(r"(\w): Dims\b", r"\1: Dims | Sequence[int]", content)
    content, changed = re.subn(
        r"^class Dims:\n",
        "class Dims:\n    def __iter__(self) -> Iterator[int]: ...\n",
        content,
        flags=re.M,
    )
    assert changed == 1
    package = directory / "tensorrt"
    package.mkdir()
    imports = "import builtins\nfrom collections.abc import Iterator, Sequence\n"
    (package / "__init__.pyi").write_text(f"{imports}{content}\n__version__: str\n")
    (directory / "mypy.ini").write_text(CONFIGURATION.format(stubs=directory))
    return directory


def mypy(stubs, *files):
    options = ["--config-file", str(stubs / "mypy.ini"), "--cache-dir", str(stubs / "cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.stdout + done.stderr


def test_what_imports_tensorrt_is_found():
    assert CONTAINERS / "tensorrt" / "compile" / "engine_builder.py" in CALLERS
    assert CONTAINERS / "triton" / "tensorrt_session.py" in CALLERS


def test_callers_are_typed(stubs):
    assert mypy(stubs, *CALLERS) == f"Success: no issues found in {len(CALLERS)} source files\n"
