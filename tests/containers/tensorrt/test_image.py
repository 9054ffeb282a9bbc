"""The image: its Dockerfile, what it installs, and that its files alone serve."""

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

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from slipway.facts.tensorrt.releases import tensorrt_releases
from slipway.image_sources import copy_image_files, image_files
from slipway.stacks.image_stack import COMPILER_TARGET, SERVING_TARGET
from tests.support import dockerfiles
from tests.support.groups import load
from tests.support.locks import applies, lines, locked, needed
from tests.support.logging_programs import LoggingProgram

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "containers" / "tensorrt"


def stage(target):
    """One stage's instructions; of those that it has several times, the last."""
    return dict(dockerfiles.stage("tensorrt", target))


def test_the_default_base_is_the_newest_releases():
    newest = list(tensorrt_releases().values())[-1]
    found = dockerfiles.instructions("tensorrt")
    assert found[0] == ("ARG", f"BASE_IMAGE=nvcr.io/nvidia/tensorrt:{newest.base_image}")
    stages = [arguments for name, arguments in found if name == "FROM"]
    assert stages == [
        "${BASE_IMAGE} AS program",
        "program AS compiling",
        f"${{BASE_IMAGE}} AS {COMPILER_TARGET}",
        # What a build without a target makes.
        f"${{BASE_IMAGE}} AS {SERVING_TARGET}",
    ]


def test_sagemaker_may_name_the_port_and_run_it_as_root():
    serving = stage(SERVING_TARGET)
    assert serving["LABEL"] == "com.amazonaws.sagemaker.capabilities.accept-bind-to-port=true"
    assert serving["STOPSIGNAL"] == "SIGTERM"
    assert json.loads(serving["CMD"]) == ["serve"]
    # AWS asks for root.
    assert "USER" not in dict(dockerfiles.instructions("tensorrt"))


def test_the_compiler_runs_the_same_program():
    serving, compiler = stage(SERVING_TARGET), stage(COMPILER_TARGET)
    for name in ("ENTRYPOINT", "STOPSIGNAL"):
        assert compiler[name] == serving[name]
    # It chooses CUDA's library first, as the base's own entry point would.
    assert json.loads(serving["ENTRYPOINT"])[-2:] == ["-m", "containers.tensorrt.start"]
    assert json.loads(compiler["CMD"]) == ["compile"]
    [variable] = shlex.split(compiler["ENV"])
    assert variable in shlex.split(serving["ENV"])
    assert compiler["COPY"] == "--from=compiling /opt/slipway /opt/slipway"
    assert serving["COPY"] == "--from=program /opt/slipway /opt/slipway"


def test_the_images_files_alone_serve_as_its_entry_point_says(tmp_path):
    copy_image_files(ROOT, "tensorrt", tmp_path / "opt" / "slipway" / "program")
    serving = stage(SERVING_TARGET)
    entry_point = json.loads(serving["ENTRYPOINT"])
    python, option, *arguments = entry_point[-3:]
    assert (python, option) == ("/opt/slipway/venv/bin/python", "-m")
    variables = dict(item.split("=") for item in shlex.split(serving["ENV"]))
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
    served = LoggingProgram(
        *arguments, *json.loads(serving["CMD"]), environment=environment, cwd=tmp_path
    )
    try:
        port = served.until("listening")["port"]
        served.until("model_loaded")
        answer = httpx.get(f"http://127.0.0.1:{port}/ping", timeout=30, trust_env=False)
        assert answer.status_code == 200
        served.process.send_signal(signal.SIGTERM)
        assert served.end() == 0
    finally:
        served.kill()


def third_party_imports(path):
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    tops = {name.partition(".")[0] for name in names}
    return tops - set(sys.stdlib_module_names) - {"containers"}


# What is imported -> the package that has it, of those that the base decides on.
OF_THE_BASE = {"cuda": "cuda-bindings", "tensorrt": "tensorrt-cu{cuda}-bindings"}


# What only `compile` runs. The builder of engines is in that folder, and is the server's as well.
COMPILES = (
    "export/",
    "compile/",
    "encoders/compile/",
    "jobs/onnx_files.py",
    "jobs/pretrained.py",
)
OF_BOTH = "compile/engine_builder.py"
# torch.onnx imports it.
IMPORTED_FOR_US = {"onnxscript"}


def imported_by(*, compiling):
    imported = set()
    for path in image_files(ROOT, "tensorrt").values():
        place = path.relative_to(ROOT / "containers").as_posix().removeprefix("tensorrt/")
        only_compiles = place.startswith(COMPILES) and place != OF_BOTH
        if path.suffix == ".py" and only_compiles == compiling:
            imported |= third_party_imports(path)
    return imported


def test_it_installs_what_the_program_imports():
    installed = {*lines(FOLDER / "requirements.in"), *OF_THE_BASE}
    assert imported_by(compiling=False) == installed - {"dumb-init"}


def test_the_compiler_has_what_compile_imports_as_well():
    own = imported_by(compiling=True) - imported_by(compiling=False) | IMPORTED_FOR_US
    assert {canonicalize_name(name) for name in own} == set(
        lines(FOLDER / "requirements-compile.in")
    )


def test_the_compilers_lock_is_of_the_versions_that_are_tested():
    exporting = {
        name: version
        for extra in ("export", "torch")
        for name, version in locked(ROOT / f"requirements-{extra}.txt").items()
    }
    found = locked(FOLDER / "requirements-compile.txt")
    assert found == {name: exporting[name] for name in found}
    assert set(lines(FOLDER / "requirements-compile.in")) <= set(found)
    # One version each, whichever list is installed last.
    serving = locked(FOLDER / "requirements.txt")
    assert {name: found[name] for name in found if name in serving} == {
        name: serving[name] for name in found if name in serving
    }
    # Those that run engines are of another version than those that PyTorch names.
    for release in tensorrt_releases().values():
        assert set(locked(FOLDER / f"requirements-{release.base_image}.txt")).isdisjoint(found)


# What PyTorch names as needed, and does without: libraries it opens when it first uses a GPU, the
# metapackage that names all of CUDA's, and Triton.
LEFT_OUT = {
    "cuda-bindings", "cuda-pathfinder", "cuda-toolkit", "nvidia-cusolver", "nvidia-nvtx", "triton",
}  # fmt: skip


@pytest.mark.torch
def test_the_compilers_lock_is_complete():
    load("torch", group="torch")
    found = locked(FOLDER / "requirements-compile.txt")
    assert LEFT_OUT.isdisjoint(found)
    for name in found:
        assert needed(name) <= found.keys() | LEFT_OUT, name


@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="PyTorch's other wheels have no CUDA")
def test_pytorch_loads_nothing_that_the_compiler_lacks(tmp_path):
    """The compiler's packages alone, as they are installed here, export a graph."""
    load("torch", group="torch")
    # With what exporting takes of the server's own.
    for name in (*locked(FOLDER / "requirements-compile.txt"), "onnxruntime", "flatbuffers"):
        for file in importlib.metadata.files(name) or []:
            source = Path(os.path.normpath(file.locate()))
            if ".." not in file.parts and source.is_file():
                target = tmp_path / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(source)
    program = """
import sys
sys.path[:0] = sys.argv[1:]
import torch, transformers
from pathlib import Path
from containers.tensorrt import export
assert torch.__file__.startswith(sys.argv[2]), torch.__file__
example = (torch.zeros(2, 3),)
torch.onnx.export(torch.nn.Linear(3, 4), example, Path(sys.argv[2], "model.onnx"), dynamo=True)
print(sorted({name.partition(".")[0] for name in sys.modules}))
print([line.split("/")[-1] for line in Path("/proc/self/maps").read_text().splitlines()])
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, ROOT, tmp_path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.onnx").is_file()
    modules, libraries = (set(ast.literal_eval(line)) for line in done.stdout.splitlines()[-2:])
    assert {"torch", "onnxscript"} <= modules
    assert {"triton", "cuda"}.isdisjoint(modules)
    # Whichever way a library would have been found.
    assert "libtorch_cuda.so" in libraries
    left_out = {file.name for name in LEFT_OUT for file in importlib.metadata.files(name) or []}
    assert "libcusolver.so.12" in left_out
    assert left_out.isdisjoint(libraries)


@pytest.mark.parametrize("version", tensorrt_releases())
def test_each_base_has_tensorrt_of_its_version(version):
    release = tensorrt_releases()[version]
    cuda = release.cuda_version.partition(".")[0]
    found = locked(FOLDER / f"requirements-{release.base_image}.txt")
    assert {package.format(cuda=cuda) for package in OF_THE_BASE.values()} <= set(found)
    assert f"{found[f'tensorrt-cu{cuda}-bindings']}.".startswith(f"{version}.")
    # Of the major version before 13, which also runs on the drivers that V100 has.
    assert found["cuda-bindings"].startswith("12.9.")


def test_the_file_of_the_base_is_installed_and_tensorrt_named_so():
    [script] = [
        text
        for name, text in dockerfiles.instructions("tensorrt")
        if name == "RUN" and "uv venv" in text
    ]
    [expression] = re.findall(r'--requirement "(/build/requirements-\$\{[^"]*\}\.txt)"', script)
    for release in tensorrt_releases().values():
        done = subprocess.run(
            ["sh", "-c", f'printf %s "{expression}"'],
            env={"BASE_IMAGE": f"nvcr.io/nvidia/tensorrt:{release.base_image}"},
            capture_output=True,
            text=True,
            check=True,
        )
        name = Path(done.stdout).name
        assert (FOLDER / name).is_file()
        assert any(
            f"containers/tensorrt/{name}" in arguments.split()
            for instruction, arguments in dockerfiles.instructions("tensorrt")
            if instruction == "COPY"
        )
    # The bindings alone are called otherwise than the package that the program imports.
    assert "ln -s tensorrt_bindings /opt/slipway/venv/lib/python3.12/site-packages/tensorrt" in (
        script
    )
    # A build argument before the first stage is none of a stage unless it asks for it.
    stage = [name for name, _ in dockerfiles.instructions("tensorrt")]
    assert stage[:3] == ["ARG", "FROM", "ARG"]


def test_the_lock_is_complete_and_of_the_versions_that_are_tested():
    tested = {}
    # The init is a package that only the tests need outside an image.
    for line in lines(ROOT / "requirements-dev.txt"):
        if "==" not in line:
            continue
        requirement = Requirement(line.removesuffix(" \\"))
        if applies(requirement):
            tested[canonicalize_name(requirement.name)] = str(requirement.specifier)
    found = locked(FOLDER / "requirements.txt")
    assert {name: f"=={version}" for name, version in found.items()} == {
        name: tested[name] for name in found
    }
    assert {canonicalize_name(name) for name in lines(FOLDER / "requirements.in")} <= set(found)
    for name in found:
        assert needed(name) <= found.keys(), name
