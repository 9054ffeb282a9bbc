"""The workers' own processes on stand-ins of the device; see standins/README.md."""

import array
import fcntl
import socket
import termios
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from containers.encoders.manifest import read_manifest
from containers.neuron import messages
from containers.neuron.messages import Message
from containers.neuron.worker import serve_lane
from containers.neuron.workers import BatchFailedError
from containers.serving.predictor import ModelLoadError
from tests.containers.neuron.machine import (
    COLUMNS,
    PATIENCE_SECONDS,
    batch,
    check,
    compiled_model,
    instance,
    runtime,
    workers,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)

# Many processes.
ALL = pytest.mark.size("all")


@pytest.mark.parametrize("cores", [4, pytest.param(16, marks=ALL)])
def test_data_parallel_has_a_model_on_every_core(tmp_path, cores):
    machine, model = instance(tmp_path, cores=cores)
    with workers(machine, model, count=cores, NEURON_RT_NUM_CORES="1") as pool:
        assert pool.lanes == cores
        process_ids = pool.process_ids()
        assert len(set(process_ids)) == cores
        assert [machine.history(core) for core in range(cores)] == [[each] for each in process_ids]
        with ThreadPoolExecutor(cores) as threads:
            for done in [threads.submit(check, pool, 100 + n) for n in range(3 * cores)]:
                done.result()
    assert not [each for each in process_ids if Path(f"/proc/{each}").exists()]


class HeldSession:
    """Computes a batch when it is let go; keeps the batches that it was given."""

    def __init__(self):
        self.given = []
        self.let_go = threading.Semaphore(0)

    def run(self, inputs):
        [number] = inputs["input_ids"].ravel().tolist()
        self.given.append(number)
        assert self.let_go.acquire(timeout=PATIENCE_SECONDS)
        return {"logits": np.full((1, 1), number, np.float32)}


def test_a_worker_has_two_batches_and_computes_one(tmp_path):
    """The second batch is in the worker's memory before the first is computed."""
    manifest = read_manifest(compiled_model(tmp_path / "model", buckets=(COLUMNS,)))
    session, turns = HeldSession(), threading.Semaphore(1)
    pairs = [socket.socketpair() for _ in range(2)]
    lanes = [
        threading.Thread(target=serve_lane, args=(theirs, session, manifest, turns))
        for _, theirs in pairs
    ]
    for lane in lanes:
        lane.start()
    ours = [end for end, _ in pairs]
    for number, end in enumerate(ours):
        end.settimeout(PATIENCE_SECONDS)
        messages.send(end, Message(messages.INPUTS, arrays={"input_ids": np.array([[number]])}))
    # Both lanes have read their batch, and one of them computes.
    eventually(lambda: len(session.given) == 1)
    eventually(lambda: all(unread_bytes(theirs) == 0 for _, theirs in pairs))
    first, second = session.given[0], 1 - session.given[0]
    session.let_go.release()
    # The second is computed without a word from the program, which has not read an answer.
    eventually(lambda: session.given == [first, second])
    session.let_go.release()
    for number, end in enumerate(ours):
        reply = messages.receive(end)
        assert reply.arrays["logits"].tolist() == [[number]]
        end.close()
    for lane, (_, theirs) in zip(lanes, pairs, strict=True):
        lane.join()
        theirs.close()


def unread_bytes(connection):
    count = array.array("i", [0])
    fcntl.ioctl(connection, termios.FIONREAD, count)
    return count[0]


def test_batches_wait_only_behind_busy_workers(tmp_path):
    with workers(*instance(tmp_path, cores=2), count=2, lanes_ahead=1) as pool:
        assert (pool.lanes, pool.lanes_ahead) == (2, 2)
        taken = [pool._take() for _ in range(4)]
        number = {each.worker.process.pid: each.worker for each in taken}
        assert len(number) == 2
        # The first two are at two workers, and so are the two that wait behind them.
        for pair in (taken[:2], taken[2:]):
            assert len({lane.worker.process.pid for lane in pair}) == 2
        assert [len(worker.taken) for worker in number.values()] == [2, 2]
        for lane in taken:
            pool._settle(lane)
        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(check, pool, 100 + n) for n in range(12)]:
                done.result()
        assert [worker.taken for worker in number.values()] == [[], []]


@pytest.mark.parametrize(("cores", "depth"), [(4, 4), (16, 16), pytest.param(64, 20, marks=ALL)])
def test_a_pipeline_is_kept_full_by_its_lanes(tmp_path, cores, depth):
    machine, model = instance(tmp_path, cores=cores, pipeline_cores=depth, stage_seconds=0.002)
    count = cores // depth
    with workers(machine, model, count=count, cores=depth, lanes=12) as pool:
        assert pool.lanes == 12 * count
        process_ids = pool.process_ids()
        for number, process_id in enumerate(process_ids):
            own = range(number * depth, (number + 1) * depth)
            assert all(machine.history(core) == [process_id] for core in own)
        assert not any(machine.history(core) for core in range(count * depth, cores))

        def most_in_flight():
            # How many requests meet depends on the machine.
            with ThreadPoolExecutor(pool.lanes) as threads:
                for done in [threads.submit(check, pool, n) for n in range(6 * pool.lanes)]:
                    done.result()
            return [machine.most_in_flight(each) for each in process_ids]

        eventually(lambda: most_in_flight() == [12] * count)


def test_a_core_that_somebody_else_has_refuses_the_start_with_the_runtimes_reason(tmp_path, capfd):
    machine, model = instance(tmp_path, cores=4)
    with workers(machine, model, count=2):
        second = workers(machine, model, count=4)
        with pytest.raises(ModelLoadError) as caught, second:
            pass
    assert str(caught.value) == (
        "2 workers, first worker 0 (NeuronCore 0): torch_neuron cannot load model-16.pt: The "
        "PyTorch Neuron Runtime could not be initialized. Neuron Driver issues are logged to your "
        "system logs. See the Neuron Runtime's troubleshooting guide for help on this topic: "
        "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
    )
    said = "NeuronCore(s) not available - Requested:1 Available:0"
    assert capfd.readouterr().err.count(said) == 2


@pytest.mark.parametrize(
    ("cores", "own", "message", "error"),
    [
        (4, 8, r"^worker 0 \(NeuronCores 0-7\): torch_neuron cannot", "Requested:8 Available:4"),
        (8, 4, "needs 8 NeuronCores and the process has 4", ""),
    ],
)
def test_too_few_cores_for_the_pipeline_refuse_the_start(
    tmp_path, capfd, cores, own, message, error
):
    machine, model = instance(tmp_path, cores=cores, pipeline_cores=8)
    refused = workers(machine, model, count=1, cores=own)
    with pytest.raises(ModelLoadError, match=message), refused:
        pass
    assert error in capfd.readouterr().err


def test_closing_answers_who_waits(tmp_path):
    machine, model = instance(tmp_path, cores=1)
    errors = []

    def compute():
        try:
            pool.compute(batch(runtime.HANG_ID))
        except BatchFailedError as error:
            errors.append(error)

    with workers(machine, model, count=1) as pool:
        threads = [threading.Thread(target=compute) for _ in range(2)]
        for thread in threads:
            thread.start()
        [process_id] = pool.process_ids()
        eventually(lambda: machine.most_in_flight(process_id) == 1)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert [str(error) for error in errors] == ["the workers are being stopped"] * 2


def test_a_worker_does_not_outlive_the_program(tmp_path):
    with workers(*instance(tmp_path, cores=1), count=1) as pool:
        process = pool._workers[0].process
        process.stdin.close()  # as the system does when the program is killed
        assert process.wait(PATIENCE_SECONDS) == 0
