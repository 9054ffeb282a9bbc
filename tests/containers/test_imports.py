"""Modules that run in an older Python than the project's, or with few packages: their imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from slipway.image_sources import image_files
from tests.support.locks import lines, locked

ROOT = Path(__file__).parents[2]
TRITON = ROOT / "containers" / "triton"
# What is imported -> the package that has it, where the name is another.
PACKAGES = {"cuda": "cuda-bindings"}
# NumPy is the base's, and Triton gives the other to the process of a Python model.
OF_TRITONS_BASE = {"numpy", "triton_python_backend_utils"}
LMI_FILES = sorted((ROOT / "containers/lmi/handler").glob("*.py"))
IN_THE_LMI_IMAGES = {
    "deepspeed", "djl_python", "fastertransformer", "numpy", "torch", "transformers",
}  # fmt: skip
# The standard library's newer names, which Python 3.10 lacks.
NEWER = {
    "asyncio": {"Runner", "TaskGroup", "timeout", "timeout_at"},
    "contextlib": {"chdir"},
    "datetime": {"UTC"},
    "enum": {"EnumCheck", "ReprEnum", "StrEnum", "member", "nonmember", "verify"},
    "hashlib": {"file_digest"},
    "itertools": {"batched"},
    "tomllib": {"load", "loads"},
    "typing": {
        "LiteralString", "Never", "NotRequired", "Required", "Self", "TypeVarTuple", "Unpack",
        "assert_never", "assert_type", "dataclass_transform", "override", "reveal_type",
    },
}  # fmt: skip
NEWER_BUILTINS = {"BaseExceptionGroup", "ExceptionGroup"}


def imports(path):
    """Yields each import as the module and the imported name, except those for types alone."""
    pending = [ast.parse(path.read_text("utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        pending.extend(ast.iter_child_nodes(node))


def too_new(path):
    """What a module uses that Python 3.10 does not know."""
    found = [f"{module}.{name}" for module, name in imports(path) if name in NEWER.get(module, ())]
    for node in ast.walk(ast.parse(path.read_text("utf-8"), feature_version=(3, 10))):
        if isinstance(node, ast.Name) and node.id in NEWER_BUILTINS:
            found.append(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found += {node.attr} & NEWER.get(node.value.id, set())
    return found


def loaded(modules):
    """Returns the names of all modules that an import loads."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {modules}; print(*sorted(sys.modules))"],
        check=True, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    return done.stdout.split()


def of_containers(names):
    return [name for name in names if name.startswith("containers")]


def source(module):
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def served_by_triton():
    """Yields every module that serving may import: what the family has, and what that imports."""
    pending = sorted(TRITON.glob("*.py"))
    found = set()
    while pending:
        path = pending.pop()
        if path in found or not path.is_file():
            continue
        found.add(path)
        yield path
        for module, name in imports(path):
            if module.split(".")[0] == "containers" and not module.startswith(
                "containers.triton.compile"
            ):
                place = ROOT.joinpath(*module.split("."))
                pending += [place.with_suffix(".py"), place / "__init__.py", place / f"{name}.py"]


def test_triton_serves_with_what_its_image_has():
    imported = {
        module.partition(".")[0] for path in served_by_triton() for module, _ in imports(path)
    } - {"containers", *sys.stdlib_module_names}
    names = {PACKAGES.get(name, name) for name in imported} - OF_TRITONS_BASE
    for python in TRITON.glob("requirements-python*.txt"):
        for bindings in TRITON.glob("requirements-*-py3.txt"):
            # The Dockerfile gives TensorRT's bindings that name.
            assert names <= {*locked(python), *locked(bindings), "tensorrt"}
    # No package is installed for nothing.
    asked = {Requirement(line).name for line in lines(TRITON / "requirements.in")}
    assert asked - {"dumb-init"} <= {*names, "numpy"}


@pytest.mark.parametrize(
    "path", list(served_by_triton()), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_triton_serves_in_the_oldest_bases_python(path):
    assert too_new(path) == []


def test_every_source_can_be_compiled_by_the_oldest_bases_python():
    """As the Dockerfile does; what is for the compiler alone may import newer names."""
    for path in image_files(ROOT, "triton").values():
        if path.suffix == ".py":
            ast.parse(path.read_text("utf-8"), feature_version=(3, 10))


def test_a_neuron_worker_imports_nothing_of_the_program():
    """AWS's image for inf1 has Python 3.10; the program's own is newer."""
    names = loaded("containers.neuron.worker")
    assert of_containers(names) == [
        "containers",
        "containers.encoders",
        "containers.encoders.manifest",
        "containers.encoders.outputs",
        "containers.encoders.session",
        "containers.neuron",
        "containers.neuron.messages",
        "containers.neuron.runtimes",
        "containers.neuron.runtimes.selection",
        "containers.neuron.worker",
        "containers.serving",
        "containers.serving.json_files",
        "containers.serving.predictor",
    ]
    assert {"onnxruntime", "torch"}.isdisjoint(names)
    for name in (*of_containers(names), "containers.neuron.runtimes.torch_script"):
        assert too_new(source(name)) == []


def test_the_worker_of_a_neuron_compile_job_keeps_to_python_3_10():
    names = loaded("containers.neuron.compile.worker")
    assert {"torch", "tokenizers"}.isdisjoint(names)
    assert "containers.jobs.child" in names
    # Imported once the job has begun.
    later = ["containers.jobs.pretrained", "containers.serving.onnx_session"]
    later += ["containers.neuron.compile.compilers"]
    later += [f"containers.encoders.compile.{name}" for name in ("modules", "parity")]
    for name in (*of_containers(names), *later):
        assert too_new(source(name)) == []


def test_serving_a_neuron_model_does_not_load_the_compiler():
    names = of_containers(loaded("containers.neuron.__main__"))
    assert "containers.neuron.predictor" in names
    assert [name for name in names if "compile" in name] == []


def test_a_server_without_a_metrics_port_loads_nothing_of_prometheus():
    names = loaded("containers.tensorrt.__main__, containers.serving.server")
    assert [name for name in names if "prometheus" in name] == []


@pytest.mark.parametrize("path", LMI_FILES, ids=lambda path: path.name)
def test_the_lmi_handler_stands_alone_in_python_3_8(path):
    """The directory alone is on the path of the oldest image."""
    ast.parse(path.read_text(), feature_version=(3, 8))
    # Without it, annotations like `int | None` are evaluated, which 3.8 cannot.
    assert path.name == "__init__.py" or "from __future__ import annotations" in path.read_text()
    imported = {module.partition(".")[0] for module, _ in imports(path)}
    beside = {path.stem for path in LMI_FILES}
    assert imported <= beside | IN_THE_LMI_IMAGES | set(sys.stdlib_module_names)


def test_no_file_of_the_lmi_handler_shadows_a_library():
    """The directory comes first on the path: `requests.py` would be found by every library."""
    names = {path.stem for path in LMI_FILES} - {"__init__", "model"}
    assert all(name.startswith("slipway_") for name in names)
