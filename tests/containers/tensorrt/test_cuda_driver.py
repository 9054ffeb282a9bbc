"""The images' entry point: which CUDA library the program gets, and what the log says.

Drivers and libraries are files below `tmp_path`. What is expected where the image's libraries work
is what AWS's start_cuda_compat.sh does with the same files (aws/deep-learning-containers at
e0ecedea6a), but for the open kernel modules, whose line its pattern does not match.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from containers.tensorrt.start import OLDEST_DRIVERS, decide, start_cuda
from slipway.facts.images import default_inference_ami, inference_amis
from slipway.facts.tensorrt.releases import tensorrt_releases
from tests.support.shared_library import write_library

ROOT = Path(__file__).parents[3]
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Tue Apr  8 12:41:17 UTC 2025\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder)\n"
GCC = "GCC version:  gcc version 7.3.1 20180712 (Red Hat 7.3.1-17) (GCC)\n"
NVIDIA_IMAGE, AWS_IMAGE = "compat/lib.real", "compat"
CUDA_13 = {"CUDA_VERSION": "13.0.1.012"}
FAILED = "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver."


class Machine:
    """The files that a container sees of its host's driver and of its image's CUDA."""

    def __init__(self, root):
        self.root = root
        self.environ = {"PATH": str(root / "bin"), **CUDA_13}
        self.probed = []
        self.failure = None

    def driver(self, line, version):
        file = self.root / "proc/driver/nvidia/version"
        file.parent.mkdir(parents=True)
        file.write_text(line.format(version) + GCC)

    def nvidia_smi(self, prints, exit_code=0):
        program = self.root / "bin/nvidia-smi"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\necho '{prints}'\nexit {exit_code}\n")
        program.chmod(0o755)

    def compatibility(self, version, place=NVIDIA_IMAGE):
        directory = self.root / "usr/local/cuda" / place
        directory.mkdir(parents=True)
        (directory / f"libcuda.so.{version}").touch()
        (directory / "libcuda.so.1").symlink_to(f"libcuda.so.{version}")
        (directory / "libcuda.so").symlink_to("libcuda.so.1")
        return directory

    def probe(self, environment):
        self.probed.append(environment["LD_LIBRARY_PATH"])
        return self.failure

    def decide(self):
        return decide(self.environ, self.root, self.probe)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.mark.parametrize("line", [PROPRIETARY, OPEN], ids=["proprietary", "open"])
@pytest.mark.parametrize("place", [NVIDIA_IMAGE, AWS_IMAGE])
@pytest.mark.parametrize(
    ("driver", "is_used"),
    [
        ("470.256.02", True),
        ("535.247.01", True),
        ("550.163.01", True),
        # By number, not by letter.
        ("580.9.1", True),
        ("580.65.06", True),
        ("580.82.07", False),
        ("580.105.08", False),
        ("590.10", False),
    ],
)
def test_the_images_libraries_come_first_where_the_driver_is_older(
    machine, line, place, driver, is_used
):
    machine.driver(line, driver)
    directory = machine.compatibility("580.82.07", place)
    machine.environ["LD_LIBRARY_PATH"] = "/usr/local/nvidia/lib:/usr/local/nvidia/lib64"
    found = machine.decide()
    assert (found.driver, found.problem) == (driver, None)
    assert found.is_compatibility_used == is_used
    first = f"{directory}:" if is_used else ""
    assert found.environment == {
        **machine.environ,
        "LD_LIBRARY_PATH": f"{first}/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
    }
    # Asked before it is relied on, with the variables that the program gets.
    assert machine.probed == ([found.environment["LD_LIBRARY_PATH"]] if is_used else [])


def test_an_empty_path_does_not_become_the_working_directory(machine):
    machine.driver(PROPRIETARY, "535.247.01")
    directory = machine.compatibility("580.82.07")
    machine.environ["LD_LIBRARY_PATH"] = ""
    assert machine.decide().environment["LD_LIBRARY_PATH"] == str(directory)
    del machine.environ["LD_LIBRARY_PATH"]
    assert machine.decide().environment["LD_LIBRARY_PATH"] == str(directory)


def test_nvidia_smi_is_asked_where_the_kernel_does_not_say(machine):
    machine.nvidia_smi("535.247.01")
    machine.compatibility("580.82.07")
    found = machine.decide()
    assert (found.driver, found.is_compatibility_used) == ("535.247.01", True)


@pytest.mark.parametrize("prints", [None, FAILED, ""], ids=["absent", "failed", "silent"])
def test_without_a_driver_nothing_changes(machine, prints):
    """As on a CPU instance, where a graph is served, or compiled for the target `cpu`."""
    if prints is not None:
        machine.nvidia_smi(prints, exit_code=9)
    machine.compatibility("580.82.07")
    found = machine.decide()
    assert (found.driver, found.problem, machine.probed) == (None, None, [])
    assert found.environment == machine.environ
    assert found.reason == "the host has no NVIDIA driver"


@pytest.mark.parametrize(
    ("cuda", "driver", "libraries", "failure", "problem"),
    [
        ("13.0.1.012", "580.65.06", None, None, None),
        ("13.0.1.012", "575.57.08", None, None, "it has no compatibility libraries"),
        ("13.0.1.012", "575.57.08", "570.124.06", None, "{its} are not newer"),
        ("13.0.1.012", "545.23.08", "580.82.07", "cuInit returns 803", "{its} fail ({failure})"),
        ("12.6.1.006", "550.163.01", "560.35.03", "cuInit returns 804", None),
    ],
)
def test_without_libraries_that_work_the_image_needs_the_driver(
    machine, cuda, driver, libraries, failure, problem
):
    # As in NVIDIA's images until their entry point makes it.
    machine.environ |= {"CUDA_VERSION": cuda, "LD_LIBRARY_PATH": "/usr/local/cuda/compat/lib"}
    machine.driver(OPEN, driver)
    machine.failure = failure
    if libraries:
        machine.compatibility(libraries)
    found = machine.decide()
    assert (found.environment, found.is_compatibility_used) == (machine.environ, False)
    its = f"its compatibility libraries {libraries}"
    if problem:
        assert found.problem == (
            f"the image's CUDA {cuda} needs NVIDIA driver 580 or later, the host has {driver}, and "
            + problem.format(its=its, failure=failure)
        )
    else:
        assert found.problem is None
    if failure and not problem:
        assert found.reason == f"{its} fail ({failure}), and the driver is new enough without them"


def test_the_images_cuda_is_also_told_by_its_directory(machine):
    del machine.environ["CUDA_VERSION"]
    machine.driver(PROPRIETARY, "535.247.01")
    (machine.root / "usr/local/cuda-13.0").mkdir(parents=True)
    (machine.root / "usr/local/cuda").symlink_to("cuda-13.0")
    found = machine.decide()
    assert found.problem.startswith("the image's CUDA 13.0 needs NVIDIA driver 580")


def test_a_library_without_a_version_in_its_name_is_none(machine):
    machine.driver(OPEN, "580.65.06")
    directory = machine.root / "usr/local/cuda/compat"
    directory.mkdir(parents=True)
    (directory / "libcuda.so.1").touch()
    assert machine.decide().compatibility is None


def test_the_oldest_driver_of_every_release_is_known_and_the_default_host_has_it():
    for release in tensorrt_releases().values():
        oldest = OLDEST_DRIVERS[int(release.cuda_version.partition(".")[0])]
        default = default_inference_ami(release.cuda_version)
        driver = inference_amis()[default].nvidia_driver
        assert int(driver) >= oldest


# CUDA's library itself, in a process of its own


def cuda_in(directory):
    return start_cuda({"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(directory)})


@pytest.mark.skipif(sys.platform != "linux", reason="LD_LIBRARY_PATH is of Linux's loader")
@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (0, None),
        (100, "cuInit returns 100, no GPU is visible"),
        (803, "cuInit returns 803, the compatibility libraries do not support this driver"),
        (804, "cuInit returns 804, the GPU does not support forward compatibility"),
        (999, "cuInit returns 999"),
    ],
)
def test_the_loader_takes_the_first_library_and_cuinit_decides(tmp_path, status, failure):
    write_library(tmp_path / "libcuda.so.1", "cuInit", returns=status)
    assert ctypes.CDLL(str(tmp_path / "libcuda.so.1")).cuInit(0) == status
    assert cuda_in(tmp_path) == failure


@pytest.mark.skipif(sys.platform != "linux", reason="LD_LIBRARY_PATH is of Linux's loader")
def test_a_library_that_cannot_be_loaded_is_a_reason(tmp_path):
    (tmp_path / "libcuda.so.1").write_bytes(b"no library")
    failure = cuda_in(tmp_path)
    assert failure.startswith("OSError: ")
    assert "libcuda.so.1" in failure


# The entry point

START = """
import os, sys
from pathlib import Path
from containers.tensorrt.start import main
main(sys.argv[2:], os.environ, root=Path(sys.argv[1]))
"""


def start(machine, *arguments, **variables):
    return subprocess.Popen(
        [sys.executable, "-c", START, machine.root, *arguments],
        env={**machine.environ, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(machine, *arguments, **variables):
    """Returns the events of a program that ends because of its driver."""
    process = start(machine, *arguments, **variables)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (1, "")
    return [json.loads(line) for line in output.splitlines()]


def test_a_driver_that_is_too_old_ends_the_program_with_the_remedy(machine):
    machine.driver(PROPRIETARY, "545.23.08")
    chosen, failed = ended(machine, "compile", SM_OUTPUT_DIR=str(machine.root / "output"))
    assert chosen["event"] == "cuda_driver_chosen"
    assert (chosen["driver_version"], chosen["cuda_version"]) == ("545.23.08", "13.0.1.012")
    reason = (machine.root / "output/failure").read_text("utf-8")
    assert reason == failed["message"]
    assert reason == (
        "the image's CUDA 13.0.1.012 needs NVIDIA driver 580 or later, the host has 545.23.08, and "
        "it has no compatibility libraries; no setting of a training job chooses its driver: run "
        "it on another instance type (artifacts.compile.instance), whose hosts have a newer one"
    )

    failed = ended(machine, "serve")[-1]
    assert (failed["event"], failed["level"]) == ("cuda_driver_too_old", "ERROR")
    assert failed["message"].endswith(
        "; choose a host image with a newer driver in endpoint.inference_ami_version, or remove "
        "that setting: the default fits the image's CUDA"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="LD_LIBRARY_PATH is of Linux's loader")
def test_the_program_takes_the_process_over_with_the_images_library(machine):
    machine.driver(PROPRIETARY, "535.247.01")
    directory = machine.compatibility("580.82.07")
    write_library(directory / "libcuda.so.580.82.07", "cuInit", returns=0)
    process = start(
        machine,
        "serve",
        SAGEMAKER_BIND_TO_PORT="0",
        SLIPWAY_BIND_ADDRESS="127.0.0.1",
        SM_MODEL_DIR=str(ROOT / "samples/gpt2-autocomplete/model"),
    )
    try:
        chosen = json.loads(process.stdout.readline())
        assert chosen["uses_compatibility_libraries"] is True
        assert chosen["reason"] == "the driver is older than the image's compatibility libraries"
        assert chosen["compatibility_version"] == "580.82.07"
        while json.loads(process.stdout.readline())["event"] != "model_loaded":
            pass
        # The same process, which the loader started anew.
        variables = Path(f"/proc/{process.pid}/environ").read_text().split("\0")
        assert f"LD_LIBRARY_PATH={directory}" in variables
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
