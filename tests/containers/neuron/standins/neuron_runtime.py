"""The device and its runtime, as far as `README.md` says."""

import contextlib
import fcntl
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

# Token ids that go wrong. The second kind does so once in the life of the machine.
CRASH_ID = 50_001
CRASH_ONCE_ID = 50_002
FAIL_ID = 50_003
HANG_ID = 50_004

# What the runtime writes and what torch-neuron raises, in AWS's words.
NOT_AVAILABLE = (
    "ERROR   NRT:nrt_allocate_neuron_cores               NeuronCore(s) not available - "
    "Requested:{requested} Available:{available}"
)
NOT_INITIALIZED = (
    "The PyTorch Neuron Runtime could not be initialized. Neuron Driver issues are logged\n"
    "to your system logs. See the Neuron Runtime's troubleshooting guide for help on this\n"
    "topic: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
)


class Machine:
    """The devices of an instance, which processes share through a directory."""

    def __init__(self, directory, cores):
        self.directory = directory
        self.cores = cores

    @classmethod
    def here(cls):
        return cls(
            Path(os.environ["NEURON_STANDIN_DIRECTORY"]), int(os.environ["NEURON_STANDIN_CORES"])
        )

    def history(self, core):
        """Returns the processes that had a core, one after the other."""
        path = self.directory / f"core-{core}"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def most_in_flight(self, process_id):
        """Returns how many batches a process had in its graphs at a time, at most."""
        path = self.directory / f"in-flight-{process_id}"
        return max(int(line) for line in path.read_text().split())


class Runtime:
    """The runtime in one process; it knows the environment as it is now, and never looks again."""

    def __init__(self):
        self.machine = Machine.here()
        self._visible = os.environ.get("NEURON_RT_VISIBLE_CORES")
        self._files = []
        self._lock = threading.Lock()
        self._in_flight = 0

    def reserve(self):
        """Reserves the cores, once; returns how many there are."""
        with self._lock:
            if not self._files:
                self._reserve()
            return len(self._files)

    @contextlib.contextmanager
    def batch(self):
        with self._lock:
            self._in_flight += 1
            with (self.machine.directory / f"in-flight-{os.getpid()}").open("a") as file:
                file.write(f"{self._in_flight}\n")
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1

    def _reserve(self):
        wanted = everything = range(self.machine.cores)
        if self._visible is not None:
            first, _, last = self._visible.partition("-")
            wanted = range(int(first), int(last or first) + 1)
        taken = [core for core in wanted if core in everything and self._take(core)]
        if taken != list(wanted):
            self._refuse(len(wanted), len(taken))
        for file in self._files:
            os.write(file, f"{os.getpid()}\n".encode())

    def _take(self, core):
        # Inherited by nobody, so that it ends with this process.
        path = self.machine.directory / f"core-{core}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._files.append(file)
        return True

    def _refuse(self, requested, available):
        for file in self._files:
            os.close(file)
        self._files.clear()
        print(
            NOT_AVAILABLE.format(requested=requested, available=available),
            file=sys.stderr,
            flush=True,
        )
        raise RuntimeError(NOT_INITIALIZED)


# By operator; the package that adds the operator adds its runtime.
RUNTIMES = {}


class Graph:
    def __init__(self, path):
        self._document = json.loads(Path(path).read_text())
        operator = self._document["operator"]
        if operator not in RUNTIMES:
            raise RuntimeError(
                f"\nUnknown builtin op: {operator}.\nCould not find any similar ops to {operator}. "
                "This op may not exist or may not be currently supported in TorchScript.\n"
            )
        self._runtime = RUNTIMES[operator]
        cores, stages = self._runtime.reserve(), self._document["pipeline_cores"]
        if stages > cores:
            raise RuntimeError(
                f"the model needs {stages} NeuronCores and the process has {cores}: NRT_RESOURCE"
            )
        self._stages = [threading.Lock() for _ in range(stages)]

    def __call__(self, *inputs):
        document = self._document
        shape = [document["batch_size"], document["sequence_length"]]
        given = [list(each.shape) for each in inputs]
        if given != [shape] * document["inputs"]:
            raise RuntimeError(
                f"the graph takes {document['inputs']} inputs of {shape}, and was given {given}"
            )
        if any(each.dtype != np.int64 for each in inputs):
            raise RuntimeError("the graph takes inputs of int64")
        with self._runtime.batch():
            for stage in self._stages:
                with stage:
                    time.sleep(document["stage_seconds"])
            self._go_wrong(inputs[0])
            return computed(document["task"], *inputs)

    def _go_wrong(self, input_ids):
        if CRASH_ID in input_ids:
            os.kill(os.getpid(), signal.SIGKILL)
        if CRASH_ONCE_ID in input_ids:
            with contextlib.suppress(FileExistsError):
                (self._runtime.machine.directory / "crashed").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        if FAIL_ID in input_ids:
            raise RuntimeError("nrt_execute status=1203")
        if HANG_ID in input_ids:
            threading.Event().wait()


def computed(task, *inputs):
    """What a graph computes: each column by itself, but for its row's sum of ids."""
    input_ids, attention_mask = inputs[:2]
    first = ((input_ids * 7919) % 101 / 10).astype(np.float32)
    second = ((input_ids * 6053) % 103 / 10).astype(np.float32)
    if task == "question-answering":
        return first, second
    if task == "token-classification":
        return (np.stack([first, second], axis=-1),)
    if task == "sequence-classification":
        total = (input_ids * attention_mask).sum(axis=1)
        return (np.stack([total % 7, total % 5], axis=-1).astype(np.float32),)
    return (np.stack([first, second, first + second], axis=-1),)
