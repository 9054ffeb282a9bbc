"""The programs as a container starts them: as its first process, in a network of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slipway.stacks.image_stack import COMPILER_TARGET, SERVING_TARGET
from tests.support import network_watch
from tests.support.dockerfiles import stage
from tests.support.processes import children, command_line
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
PROGRAMS = {"tensorrt": "containers.tensorrt", "neuron": "containers.neuron"}
SAMPLES = {"tensorrt": "gpt2-autocomplete", "neuron": "bert-qa"}
# Between the start of the interpreter and the end of the imports.
EARLY_SECONDS = (0.0, 0.05, 0.2, 0.6)
# ONNX Runtime's first look-up comes some eight seconds after its import.
WATCHED_SECONDS = 15
PATIENCE_SECONDS = 30


def init_of(family, target=SERVING_TARGET):
    """Returns an image's entry point up to its Python, with the init that is installed here."""
    entry_point = json.loads(dict(stage(family, target))["ENTRYPOINT"])
    python = entry_point.index("/opt/slipway/venv/bin/python")
    program, *options = entry_point[:python]
    assert program == "/opt/slipway/venv/bin/dumb-init"
    return [str(Path(sys.executable).with_name("dumb-init")), *options]


def environment_of(family, home):
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "SAGEMAKER_BIND_TO_PORT": "0",
        "SM_MODEL_DIR": str(ROOT / "samples" / SAMPLES[family] / "model"),
    }
    if family == "neuron":
        environment["SLIPWAY_WORKER_PYTHON"] = sys.executable
    return environment


@pytest.mark.namespaces
@pytest.mark.parametrize("family", PROGRAMS)
@pytest.mark.parametrize("seconds", EARLY_SECONDS)
def test_sigterm_ends_the_first_process_at_once_however_early(family, seconds, tmp_path):
    """A first process without a handler gets no SIGTERM at all, and so would end by SIGKILL."""
    outside = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--fork", "--pid", "--mount-proc",
         *init_of(family), sys.executable, "-m", PROGRAMS[family], "serve"],
        env=environment_of(family, tmp_path), stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        [first] = eventually(lambda: children(outside.pid))
        # The init has started its child, which is the program. Between its fork and its exec,
        # far less than a millisecond, dumb-init loses a signal.
        eventually(lambda: [each for each in children(first) if "-m" in command_line(each)[:2]])
        # The moment is what is tested: there is no condition to wait for.
        time.sleep(seconds)
        sent = time.monotonic()
        os.kill(first, signal.SIGTERM)
        assert outside.wait(PATIENCE_SECONDS) in (0, 128 + signal.SIGTERM)
        assert time.monotonic() - sent < 5
    finally:
        outside.kill()
        outside.wait()


@pytest.mark.parametrize("family", PROGRAMS)
def test_both_images_of_a_container_have_the_init(family):
    assert init_of(family, COMPILER_TARGET) == init_of(family)
    assert init_of(family)[1:] == ["--single-child", "--"]


def watch(command, environment):
    """Starts a command in a network of its own; its output is where its packets were sent."""
    return subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--net", "--fork",
         sys.executable, network_watch.__file__, str(WATCHED_SECONDS), *command],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.namespaces
@pytest.mark.size("all")
def test_serving_looks_up_no_host_and_sends_no_packet(tmp_path):
    """The third command has the telemetry on, and shows that the watch would see it."""
    homes = {name: tmp_path / name for name in (*PROGRAMS, "telemetry")}
    for home in homes.values():
        home.mkdir()
    running = {
        family: watch(
            [sys.executable, "-m", program, "serve"], environment_of(family, homes[family])
        )
        for family, program in PROGRAMS.items()
    }
    telemetry = environment_of("tensorrt", homes["telemetry"]) | {"ORT_DISABLE_TELEMETRY": "0"}
    running["telemetry"] = watch([sys.executable, "-m", PROGRAMS["tensorrt"], "serve"], telemetry)
    seen, log = {}, {}
    for name, process in running.items():
        output, log[name] = process.communicate(timeout=WATCHED_SECONDS + PATIENCE_SECONDS)
        seen[name] = json.loads(output)
    for family in PROGRAMS:
        assert '"event": "model_loaded"' in log[family], log[family]
        assert seen[family] == []
        assert list(homes[family].rglob("*")) == []
    assert seen["telemetry"] == ["look-up of mobile.events.data.microsoft.com"]


def test_importing_the_runtime_writes_nothing_below_the_home_directory(tmp_path):
    subprocess.run(
        [sys.executable, "-c", "import containers.tensorrt.runtimes.onnx_runtime"],
        env=environment_of("tensorrt", tmp_path), check=True,
    )  # fmt: skip
    assert list(tmp_path.rglob("*")) == []
