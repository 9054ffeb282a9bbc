"""Imports of a compile job's worker, none of which serving has."""

import ast
import subprocess
import sys

from tests.support.compile_jobs import ROOT


def test_what_the_worker_imports_keeps_to_python_3_10():
    """AWS's image for inf1 has it; the program's own is newer."""
    program = "import sys, containers.neuron.compile.worker; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT
    )
    imported = done.stdout.split()
    assert "torch" not in imported
    assert "tokenizers" not in imported
    ours = [name for name in imported if name.startswith("containers")]
    assert "containers.jobs.child" in ours
    later = ("model", "modules", "parity")
    ours += ["containers.jobs.pretrained", "containers.serving.onnx_session"]
    ours += ["containers.neuron.compile.compilers"]
    for name in (*ours, *(f"containers.encoders.compile.{each}" for each in later)):
        source = ROOT.joinpath(*name.split("."))
        path = source / "__init__.py" if source.is_dir() else source.with_suffix(".py")
        tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 10))
        names = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        # New in 3.11.
        assert names.isdisjoint({"Self", "UTC", "StrEnum", "assert_never"}), name


def test_serving_does_not_load_it():
    program = (
        "import sys\n"
        "import containers.neuron.__main__\n"
        "print([name for name in sys.modules if 'compile' in name and name.startswith('cont')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"
