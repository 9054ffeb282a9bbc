"""Whatever ends a compile job, it leaves a whole model or none, and a reason.

A module of these tests stands in for torch and does, when it is imported, what a library can do to
a process. What real stages do at a kill is in test_compile.py.
"""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.compile_jobs import ROOT, until_gone

PACKAGES = ("transformers", "onnx", "onnx_ir", "onnxscript", "safetensors")
WAIT = "import signal\nwhile True: signal.pause()"
# Holds Python's lock and lets no signal handler run, as a long call into a library can.
HOLD_THE_LOCK = "sum(range(10**15))"


def start(job, torch, **options):
    """Starts a job that comes as far as importing `torch`; returns the worker's process id."""
    job.stand_in("torch", torch)
    for package in PACKAGES:
        job.stand_in(package)
    job.start(**options)
    worker = job.until("compile_started")["worker_process_id"]
    job.until("stage_started", stage="import_packages")
    return worker


@pytest.mark.parametrize(
    ("torch", "number"),
    [(WAIT, signal.SIGINT), (HOLD_THE_LOCK, signal.SIGTERM)],
    ids=["waiting", "holding the lock"],
)
def test_stop_ends_at_once_and_leaves_nothing(job, torch, number):
    worker = start(job, torch)
    assert len(job.model_files) == 1  # the scratch directory
    job.process.send_signal(number)
    assert job.end() == 128 + number
    until_gone(worker)
    [stopped] = job.named("compile_stopped")
    assert (stopped["signal"], stopped["message"]) == (
        number.name,
        "nothing is left in the output directory",
    )
    assert job.model_files == []
    # A stop is no failure: SageMaker says itself that the job was stopped.
    assert not (job.output / "failure").exists()


def test_ctrl_c_in_a_terminal_reaches_both_processes(job):
    worker = start(job, WAIT, start_new_session=True)
    os.killpg(job.process.pid, signal.SIGINT)
    assert job.end() == 128 + signal.SIGINT
    until_gone(worker)
    assert job.standard_error.read_text() == ""
    assert job.model_files == []


def test_kill_leaves_no_model_and_no_worker(job):
    worker = start(job, WAIT)
    job.process.kill()
    assert job.end() == -signal.SIGKILL
    until_gone(worker)
    [scratch] = job.model.iterdir()
    assert scratch.name.startswith(".compile-")

    # The next run clears it away.
    job.stand_in("torch", "raise MemoryError")
    assert job.run() == 1
    assert job.model_files == []


def test_lack_of_memory_is_named(job):
    """The kernel kills the largest process of a container that has used up its memory."""
    worker = start(job, WAIT)
    os.kill(worker, signal.SIGKILL)
    assert job.end() == 1
    size_bytes = (job.weights / "model.safetensors").stat().st_size
    assert job.failure == (
        "the compiling process was killed (SIGKILL), most likely for lack of memory: the "
        f"checkpoint has {size_bytes} bytes, and compiling takes a multiple of that; run the job "
        "on an instance with more memory"
    )
    assert job.model_files == []


@pytest.mark.parametrize(
    ("torch", "exit_code", "reason"),
    [
        (
            "raise MemoryError",
            1,
            "out of memory: run the job on an instance with more memory",
        ),
        (
            "import errno\nraise OSError(errno.ENOSPC, 'No space left on device')",
            1,
            "no space left for {model} (No space left on device): give the job a larger volume",
        ),
        (
            "raise RuntimeError('one\\nand two')",
            2,
            "unexpected error, a bug of this container: RuntimeError: one and two; the job's log "
            "has the traceback",
        ),
        (
            "import os\nos.abort()",
            2,
            "unexpected error, a bug of this container: RuntimeError: the compiling process died "
            "of SIGABRT; the log has its last stage; the job's log has the traceback",
        ),
    ],
    ids=["memory", "disk", "bug", "crash"],
)
def test_what_a_library_does(job, torch, exit_code, reason):
    start(job, torch)
    assert job.end() == exit_code
    assert job.failure == reason.format(model=job.model)
    [failed] = job.named("compile_failed")
    assert ("exception" in failed) == (exit_code == 2)
    assert job.model_files == []


def test_serving_does_not_load_it():
    program = (
        "import sys\n"
        "import containers.tensorrt.__main__\n"
        "print([name for name in sys.modules if 'compile' in name and name.startswith('cont')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "[]\n"
