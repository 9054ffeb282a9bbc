"""The packages that the compiler's image for inf1 adds to its base, installed by uv itself."""

import re
import subprocess
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slipway.facts.images import image
from slipway.facts.neuron.drivers import newest_neuron_version
from slipway.planning.families.neuron.hardware import NEURON_BASES
from slipway.stacks.image_stack import COMPILER_TARGET
from tests.support.dockerfiles import stage

UV = Path(sys.executable).with_name("uv")
VERSION = "1.24.0.0"


class Index(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        """Keeps the requests out of the tests' output."""


@pytest.fixture
def indexes(tmp_path):
    """The folder of package indexes, one a folder, and its address."""
    folder = tmp_path / "indexes"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Index, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def add_package(index, name, version, *metadata):
    """Puts a package with one module, which names its index, into an index."""
    module = name.replace("-", "_")
    wheel = index / name / f"{module}-{version}-py3-none-any.whl"
    wheel.parent.mkdir(parents=True, exist_ok=True)
    about = f"{module}-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{module}.py", f"index = {index.name!r}\n")
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata]
        archive.writestr(f"{about}/METADATA", "\n".join(lines) + "\n")
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        files = [f"{module}.py", f"{about}/METADATA", f"{about}/WHEEL", f"{about}/RECORD"]
        archive.writestr(f"{about}/RECORD", "".join(f"{file},,\n" for file in files))


def build_step(tmp_path, base, address):
    """Runs the image's step in an environment that stands for the base's Python."""
    (text,) = (arguments for name, arguments in stage("neuron", COMPILER_TARGET) if name == "RUN")
    text = re.sub(r"^(--mount=\S+\s+)+", "", text)
    text = text.replace("/tmp/", f"{tmp_path}/").replace("/build/uv/bin/uv", str(UV))  # noqa: S108
    return subprocess.run(
        ["sh", "-c", text],
        env={
            "PATH": f"{tmp_path / 'base' / 'bin'}:/usr/bin:/bin",
            "BASE_IMAGE": base,
            "UV_DEFAULT_INDEX": f"{address}/pypi",
            "NEURON_INDEX": f"{address}/neuron",
        },
        capture_output=True,
        text=True,
    )


def bases():
    return {
        name: str(image(name, newest_neuron_version(name), "us-east-1").uri)
        for name in NEURON_BASES.values()
    }


@pytest.mark.size("all")
def test_packages_of_aws_come_from_its_index_and_the_bases_stay(tmp_path, indexes):
    folder, address = indexes
    add_package(folder / "neuron", "neuron-cc", VERSION, "Provides-Extra: tensorflow",
                'Requires-Dist: tensorflow-build; extra == "tensorflow"',
                "Requires-Dist: numerics")  # fmt: skip
    add_package(folder / "neuron", "tensorflow-build", "1.15.5")
    # Somebody else's packages of the same names, and what AWS's index lacks.
    add_package(folder / "pypi", "neuron-cc", VERSION)
    add_package(folder / "pypi", "tensorflow-build", "9.0")
    add_package(folder / "pypi", "numerics", "1.0")
    add_package(folder / "pypi", "numerics", "2.0")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "base"], check=True)
    python = tmp_path / "base" / "bin" / "python3"
    subprocess.run(
        [UV, "--no-config", "--no-cache", "pip", "install", "--quiet", "--python", python,
         "--default-index", f"{address}/pypi", "numerics==1.0"], check=True,
    )  # fmt: skip
    done = build_step(tmp_path, bases()["pytorch-inference-neuron"], address)
    assert done.returncode == 0, done.stderr
    found = subprocess.run(
        [python, "-c", "import neuron_cc, tensorflow_build, numerics;"
         "print(neuron_cc.index, tensorflow_build.index, numerics.index)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout == "neuron neuron pypi\n"
    frozen = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    )
    assert "numerics==1.0" in frozen.stdout.splitlines()


def test_the_other_base_gets_nothing(tmp_path):
    done = build_step(tmp_path, bases()["pytorch-inference-neuronx"], "http://127.0.0.1:1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
