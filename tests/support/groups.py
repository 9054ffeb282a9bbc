"""Groups of tests that need more than `make setup` brings: PyTorch, a JDK, DJL Serving and others.

A machine may lack what a group needs. Its tests are then left out, not skipped: the run's last
lines name the group, the number of its tests and the reason (see `tests/support/summary.py`).
"""

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from slipway.embedded_aws.containers import opening
from slipway.embedded_aws.containers.engine import NoEngineError
from slipway.embedded_aws.hosting.families.lmi.djl_serving import (
    NotInstalledError,
    find_java,
    server_homes,
    version_of,
)
from slipway.embedded_aws.hosting.families.triton import triton_server
from tools.go_programs import BUILDX, REGISTRY, VERSITYGW
from tools.images import engine as images

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
# The releases of DJL Serving's Python package that `make djl` brings.
JARS = tuple(f"python-{release}.jar" for release in ("0.20.0", "0.25.0", "0.34.0"))

# transformers and torch deprecate each other's and their own names in every release.
TORCH_MARKS = (
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
)

# Of the newest TensorRT.
COMPILER_IMAGE = "tensorrt-10.13-compiler"

# Names of groups, with commas, that cannot be had on this machine; `.ci/run` sets it.
NOT_TO_BE_HAD_VARIABLE = "SLIPWAY_NOT_TO_BE_HAD"


class LeftOutError(Exception):
    def __init__(self, group: str) -> None:
        super().__init__(f"the group {group} is left out")
        self.group = group


@dataclass(frozen=True)
class Group:
    """Tests that need the same thing.

    `size` is the smallest of a run that has them; see `tests/support/sizes.py`. `lacks` says why
    this machine does not have it: "" where it has.
    """

    needs: str
    install: str
    lacks: Callable[[], str]
    size: str = "all"


def _lacks_packages(*packages: str) -> Callable[[], str]:
    def lacks() -> str:
        missing = [name for name in packages if importlib.util.find_spec(name) is None]
        return f"not installed: {', '.join(missing)}" if missing else ""

    return lacks


def _lacks_jars() -> str:
    folder = Path(os.environ.get("DJL_PYTHON", BUILD / "djl_python"))
    missing = [name for name in JARS if not (folder / name).exists()]
    return f"not in {folder.name}: {', '.join(missing)}" if missing else ""


def _lacks_java() -> str:
    try:
        find_java(os.environ)
    except NotInstalledError as error:
        return str(error)
    missing = [name for name in ("javac", "jar", "git") if shutil.which(name) is None]
    return f"not on the PATH: {', '.join(missing)}" if missing else ""


def _lacks_djl_serving() -> str:
    homes = server_homes(os.environ)
    if not os.environ.get("DJL_SERVING_HOME"):
        releases = json.loads((ROOT / "tools/djl_serving/releases.json").read_text("utf-8"))
        built = {version_of(home) for home in homes}
        if missing := sorted(set(releases) - built):
            return f"not built here, and in no package registry: {', '.join(missing)}"
    return _lacks_java()


def _lacks_triton() -> str:
    try:
        triton_server.find_server(os.environ)
    except triton_server.NotStartedError as error:
        return str(error).partition(".")[0]
    return ""


def _lacks_versitygw() -> str:
    server = VERSITYGW.place(os.environ)
    return "" if server is not None and server.is_file() else "not built here"


def _lacks_images() -> str:
    return "" if images.recorded(os.environ) else "not built here"


def _lacks_compiler_image() -> str:
    return "" if COMPILER_IMAGE in images.recorded(os.environ) else "not built here (5 GB)"


def _lacks_podman() -> str:
    if not Path(opening.PODMAN).exists():
        return f"{opening.PODMAN} is not installed"
    try:
        data = opening.engine_directory(os.environ) / "podman"
    except NoEngineError as error:
        return str(error)
    return "" if data.is_dir() else "it has built no image here"


def _lacks_buildx() -> str:
    plugin = BUILDX.place(os.environ)
    if plugin is None or not plugin.is_file():
        return "not built here"
    if shutil.which(REGISTRY) is None:
        return f"{REGISTRY} is not on the PATH"
    return _lacks_images()


def _lacks_environments(size: str, *names: str) -> Callable[[], str]:
    def lacks() -> str:
        missing = [name for name in names if not (BUILD / name / ".ready").exists()]
        return f"not in build/{' and build/'.join(missing)} ({size})" if missing else ""

    return lacks


def _lacks_namespaces() -> str:
    if shutil.which("unshare") is None:
        return "unshare is not on the PATH"
    kinds = ("--user", "--map-root-user", "--net", "--pid", "--mount-proc", "--fork")
    done = subprocess.run(["unshare", *kinds, "true"], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


GROUPS: Mapping[str, Group] = {
    "namespaces": Group(
        needs="Linux with user namespaces, so that a program is process 1 or has its own network",
        size="test",
        install="sysctl user.max_user_namespaces=1000",
        lacks=_lacks_namespaces,
    ),
    "root": Group(
        needs="root, to run a program as another user",
        install="run the tests as root",
        lacks=lambda: "" if os.geteuid() == 0 else "the tests do not run as root",
    ),
    "browser": Group(
        needs="Chromium",
        install="apt-get install chromium",
        lacks=lambda: "" if shutil.which("chromium") else "chromium is not on the PATH",
    ),
    "torch": Group(
        needs="PyTorch, transformers and what exports models (requirements-export.txt)",
        install="make export",
        lacks=_lacks_packages(
            "torch", "transformers", "deepspeed", "onnx", "onnxscript", "safetensors", "peft"
        ),
    ),
    "builder": Group(
        needs="NVIDIA's ONNX parser and engine builder (requirements-builder.txt)",
        install="make builder",
        lacks=_lacks_packages("tensorrt_rtx_bindings"),
    ),
    "checkov": Group(
        needs="checkov, in build/checkov because it pins packages that the project has too",
        install="make checkov",
        lacks=_lacks_environments("250 MB", "checkov"),
    ),
    "djl": Group(
        needs="DJL Serving's own Python classes, from Maven Central",
        install="make djl",
        lacks=_lacks_jars,
    ),
    "java": Group(
        needs="a JDK of 17 or later, and git",
        install="apt-get install git openjdk-17-jdk-headless",
        lacks=_lacks_java,
    ),
    "djl_serving": Group(
        needs="DJL Serving, which is in no package registry",
        install="make djl-serving",
        lacks=_lacks_djl_serving,
    ),
    "triton": Group(
        needs="NVIDIA's Triton Inference Server, from PyPI",
        install="make triton",
        lacks=_lacks_triton,
    ),
    "versitygw": Group(
        needs="versitygw, an S3 server that is not moto, built with Go",
        install="make versitygw",
        lacks=_lacks_versitygw,
    ),
    "images": Group(
        needs="Slipway's images, and a container engine that runs them",
        install="make images",
        lacks=_lacks_images,
    ),
    "podman": Group(
        needs="Podman, and an image that it has built",
        install="SLIPWAY_CONTAINER_ENGINE=podman python -m tools.images lmi-0.27.0",
        lacks=_lacks_podman,
    ),
    "buildx": Group(
        needs="Slipway's images, Docker's buildx, and a registry",
        install="make images buildx",
        lacks=_lacks_buildx,
    ),
    "compiler_image": Group(
        needs="Slipway's image that compiles for TensorRT, and a container engine that runs it",
        size="deep",
        install=f"python -m tools.images {COMPILER_IMAGE} --stand-ins",
        lacks=_lacks_compiler_image,
    ),
    "clients": Group(
        needs="LangChain and LiteLLM, in build/clients because they pin packages",
        install="make clients",
        lacks=_lacks_environments("420 MB", "clients"),
    ),
    "sagemaker_sdk": Group(
        needs="the SageMaker Python SDK 2 and 3, in build/sagemaker-2 and build/sagemaker-3",
        size="deep",
        install="make sagemaker-sdk",
        lacks=_lacks_environments("1 GB", "sagemaker-2", "sagemaker-3"),
    ),
    "vllm": Group(
        needs="vLLM for the CPU in build/vllm",
        size="deep",
        install="make vllm",
        lacks=_lacks_environments("7 GB", "vllm"),
    ),
}

# Why each group is left out of this run; a group that is part of it is not here. `choose` sets it.
_left_out: dict[str, str] = {}


def choose(is_part: Callable[[str], bool]) -> dict[str, str]:
    """Settles which groups are part of this run, and returns why each other one is not."""
    _left_out.clear()
    for name, group in GROUPS.items():
        if not is_part(group.size):
            _left_out[name] = ""
        elif reason := group.lacks():
            _left_out[name] = reason
    return dict(_left_out)


def missing_here() -> dict[str, str]:
    """Returns why each group that belongs to this run is not on this machine."""
    return {name: reason for name, reason in _left_out.items() if reason}


def not_to_be_had(environment: Mapping[str, str]) -> frozenset[str]:
    """Returns the groups that a CI run may lack: their sources cannot be reached from there."""
    return frozenset(filter(None, environment.get(NOT_TO_BE_HAD_VARIABLE, "").split(",")))


def need(group: str) -> None:
    """Ends the import of a test module, or a test, whose group is not part of this run.

    Raises:
        LeftOutError: `tests/support/sizes.py` makes a line of the run's summary of it.
    """
    if group in _left_out:
        raise LeftOutError(group)


def load(module: str, *, group: str) -> ModuleType:
    """Imports a module that a group brings; a module that is there and broken fails the test.

    Raises:
        LeftOutError: the group is not part of this run.
    """
    need(group)
    return importlib.import_module(module)


def of(item: pytest.Item) -> list[str]:
    # Twelve thousand tests are asked several times: their markers are read once for all groups.
    markers = {marker.name for marker in item.iter_markers()}
    return [name for name in GROUPS if name in markers]


def first_missing(item: pytest.Item) -> str | None:
    """Returns the first group that a test belongs to and this run leaves out."""
    return next((name for name in of(item) if name in _left_out), None)
