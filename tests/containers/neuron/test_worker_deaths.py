"""A worker that dies is replaced, and each of its batches is computed or answered with an error."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from containers.neuron.workers import BatchFailedError, RestartPolicy
from containers.serving.predictor import ModelLostError
from tests.containers.neuron.machine import (
    PATIENCE_SECONDS,
    batch,
    check,
    instance,
    runtime,
    workers,
)
from tests.support.messages import message_of
from tests.support.servers import captured_logs
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def log():
    with captured_logs() as capture:
        yield capture


def test_a_batch_that_waited_in_a_dead_worker_is_not_to_blame(tmp_path):
    with workers(*instance(tmp_path, cores=1), count=1, lanes_ahead=1) as pool:
        computing, waiting = pool._take(), pool._take()
        [process_id] = pool.process_ids()
        os.kill(process_id, signal.SIGKILL)
        eventually(lambda: computing.worker.is_retired)
        # The waiting request may learn of the death before the computed one.
        assert not pool._lose(waiting)
        assert pool._lose(computing)
        # Neither lane is used again, and the worker that takes its place serves.
        check(pool, 5)
        assert pool.process_ids() != [process_id]


def test_a_worker_that_dies_loses_no_batch_and_leaves_its_cores_to_the_next(tmp_path, log):
    machine, model = instance(tmp_path, cores=4)
    with workers(machine, model, count=4) as pool:
        before = pool.process_ids()
        check(pool, runtime.CRASH_ONCE_ID)
        eventually(lambda: bool(log.events("worker_restarted")))
        after = pool.process_ids()
        [died] = log.events("worker_died")
        number = died["worker"]
        assert died["message"] == "signal SIGKILL"
        assert died["cores"] == str(number)
        assert machine.history(number) == [before[number], after[number]]
        assert [m for m in range(4) if before[m] != after[m]] == [number]
        # The new one takes its turn.
        for n in range(8):
            check(pool, n)
        assert machine.most_in_flight(after[number]) == 1


def test_a_batch_that_two_workers_die_of_is_answered_with_an_error(tmp_path, log):
    with workers(*instance(tmp_path, cores=4), count=4) as pool:
        message = message_of(BatchFailedError, pool.compute, batch(runtime.CRASH_ID))
        assert message == "2 workers died one after the other, each with the batch"
        eventually(lambda: len(log.events("worker_restarted")) == 2)
        check(pool, 1)


def test_a_worker_that_dies_idle_is_replaced_before_anybody_notices(tmp_path, log):
    with workers(*instance(tmp_path, cores=2), count=2) as pool:
        os.kill(pool.process_ids()[0], signal.SIGTERM)  # which is the program's to decide about
        check(pool, 1)
        os.kill(pool.process_ids()[0], signal.SIGKILL)
        eventually(lambda: bool(log.events("worker_restarted")))
        for n in range(4):
            check(pool, n)
        assert not log.events("batch_lost")
        assert len(log.events("worker_died")) == 1


def test_all_batches_of_a_pipeline_that_dies_are_computed_again(tmp_path, log):
    machine, model = instance(tmp_path, cores=8, pipeline_cores=4, stage_seconds=0.05)
    with (
        workers(machine, model, count=2, cores=4, lanes=12) as pool,
        ThreadPoolExecutor(24) as threads,
    ):
        busy = [threads.submit(check, pool, n) for n in range(24)]
        eventually(lambda: machine.most_in_flight(pool.process_ids()[0]) == 12)
        victim = pool.process_ids()[0]
        os.kill(victim, signal.SIGKILL)
        for done in busy:
            done.result()
        eventually(lambda: bool(log.events("worker_restarted")))
        assert len(log.events("batch_lost")) >= 1
        assert {line["worker_process_id"] for line in log.events("batch_lost")} == {victim}
        assert [machine.history(core)[0] for core in range(4)] == [victim] * 4
        assert [len(machine.history(core)) for core in range(8)] == [2] * 4 + [1] * 4


def test_what_the_runtime_refuses_is_an_error_and_the_worker_is_replaced(tmp_path, log):
    with workers(*instance(tmp_path, cores=1), count=1) as pool:
        with pytest.raises(BatchFailedError, match=r"^RuntimeError: nrt_execute status=1203$"):
            pool.compute(batch(runtime.FAIL_ID))
        check(pool, 1)  # waits for the new one
        [died] = log.events("worker_died")
        assert died["message"] == "exit code 3"


def test_a_worker_that_hangs_is_killed(tmp_path, log):
    with workers(*instance(tmp_path, cores=1), count=1, batch_timeout_seconds=1.5) as pool:
        message = message_of(BatchFailedError, pool.compute, batch(runtime.HANG_ID))
        assert message == "no answer within 1.5 seconds; the worker was killed"
        check(pool, 1)
        assert len(log.events("worker_died")) == 1


def test_too_many_deaths_end_it_and_who_waits_for_a_worker_hears_so(tmp_path):
    policy = RestartPolicy(most_deaths=2, window_seconds=PATIENCE_SECONDS, first_pause_seconds=0.0)
    with workers(*instance(tmp_path, cores=1), count=1, policy=policy) as pool:
        with pytest.raises(BatchFailedError):
            pool.compute(batch(runtime.CRASH_ID))
        assert not pool.lost.done()
        with pytest.raises(ModelLostError) as caught:
            pool.compute(batch(runtime.CRASH_ID))
        assert str(caught.value) == "3 workers died within 60 seconds; at most 2 may"
        assert pool.lost.exception() is caught.value


def test_a_pause_grows_with_the_deaths():
    policy = RestartPolicy(first_pause_seconds=0.5, longest_pause_seconds=5.0)
    assert [policy.pause_seconds(deaths) for deaths in range(1, 7)] == [0.5, 1, 2, 4, 5, 5]
