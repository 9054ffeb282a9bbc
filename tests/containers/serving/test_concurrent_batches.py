"""Several batches at a time: what a model with several devices asks of the batcher."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

from containers.serving.errors import ModelFailureError, NotReadyError
from containers.serving.predictor import ConcurrentPredictor, ModelLostError
from tests.containers.serving.harness import NEVER_SECONDS, batching
from tests.support.servers import (
    PATIENCE_SECONDS,
    EchoPredictor,
    captured_logs,
    running_server,
    until,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.anyio


class SeveralPredictor(EchoPredictor):
    """Computes so many batches at a time; keeps how many there were at most.

    Of inputs that are texts those of the first one's length are computed together.
    """

    def __init__(self, concurrent_batches, *, gated=False, batches_ahead=0):
        super().__init__(gated=gated)
        self.concurrent_batches = concurrent_batches
        self.batches_ahead = batches_ahead
        self.lost = Future()
        self.is_closed = False
        # An input called "held" waits for it, and so does the answer of one called "long".
        self.held = threading.Event()
        # Set while an answer with an output called "long" is rendered, which waits for `held`.
        self.is_rendering = threading.Event()
        self.rendered_by = []
        self.most_at_a_time = 0
        self._at_a_time = 0
        self._lock = threading.Lock()

    def choose(self, waiting, most):
        same = [i for i, value in enumerate(waiting) if len(str(value)) == len(str(waiting[0]))]
        return same[:most]

    def predict(self, batch):
        with self._lock:
            self._at_a_time += 1
            self.most_at_a_time = max(self.most_at_a_time, self._at_a_time)
        try:
            outputs = super().predict(batch)
            if "held" in batch:
                assert self.held.wait(PATIENCE_SECONDS)
            return outputs
        finally:
            with self._lock:
                self._at_a_time -= 1

    def renders_long(self, outputs):
        return "long" in outputs

    def render(self, outputs):
        self.rendered_by.append(threading.current_thread().name)
        if "long" in outputs:
            self.is_rendering.set()
            assert self.held.wait(PATIENCE_SECONDS)
        return super().render(outputs)

    def close(self):
        self.is_closed = True


def test_it_is_told_from_other_predictors():
    assert isinstance(SeveralPredictor(2), ConcurrentPredictor)
    assert not isinstance(EchoPredictor(), ConcurrentPredictor)


async def test_as_many_batches_are_computed_as_the_model_can():
    predictor = SeveralPredictor(3, gated=True)
    async with batching(predictor, size=2) as harness:
        tasks = []
        for value in "abcdefg":
            tasks.append(harness.submit(value))
            count = min(3, len(tasks))
            await until(lambda count=count: len(predictor.batches) == count)
        await until(lambda: harness.batcher.queue_length == 4)
        assert sorted(predictor.batches) == [["a"], ["b"], ["c"]]
        assert harness.batcher.rows == 3
        assert harness.batcher.is_computing
        predictor.release(5)
        results = await asyncio.gather(*tasks)
    assert sorted(predictor.batches[3:]) == [["d", "e"], ["f", "g"]]
    assert [result.outputs for result in results] == [(value,) for value in "abcdefg"]
    assert predictor.most_at_a_time == 3
    assert not harness.batcher.is_computing


async def test_only_full_batches_go_ahead():
    predictor = SeveralPredictor(1, gated=True, batches_ahead=1)
    async with batching(predictor, size=2) as harness:
        tasks = [harness.submit("a")]
        await until(lambda: predictor.batches == [["a"]])
        tasks.append(harness.submit("b"))
        await until(lambda: harness.batcher.queue_length == 1)
        # It waits for another input, or for the first batch.
        assert harness.batcher.rows == 1
        tasks.append(harness.submit("c"))
        await until(lambda: predictor.batches == [["a"], ["b", "c"]])
        # A third batch does not go ahead, full as it is.
        tasks += [harness.submit("d"), harness.submit("e")]
        await until(lambda: harness.batcher.queue_length == 2)
        assert harness.batcher.rows == 3
        predictor.release(3)
        results = await asyncio.gather(*tasks)
    assert predictor.batches == [["a"], ["b", "c"], ["d", "e"]]
    assert [result.outputs for result in results] == [(value,) for value in "abcde"]
    assert predictor.most_at_a_time == 2


async def test_the_thread_of_a_device_takes_its_next_batch_by_itself():
    predictor = SeveralPredictor(2, gated=True)
    async with batching(predictor, size=1) as harness:
        tasks = [harness.submit(value) for value in "abcd"]
        await until(lambda: len(predictor.batches) == 2)
        predictor.release(4)
        # The event loop has no turn meanwhile.
        eventually(lambda: len(predictor.batches) == 4)
        assert not any(task.done() for task in tasks)
        await asyncio.gather(*tasks)


async def test_a_batch_that_goes_ahead_is_full_of_inputs_that_go_together():
    predictor = SeveralPredictor(1, gated=True, batches_ahead=1)
    async with batching(predictor, size=2) as harness:
        tasks = [harness.submit("a")]
        await until(lambda: predictor.batches == [["a"]])
        tasks += [harness.submit("b"), harness.submit("long")]
        await until(lambda: harness.batcher.queue_length == 2)
        assert harness.batcher.rows == 1
        tasks.append(harness.submit("c"))
        await until(lambda: predictor.batches == [["a"], ["b", "c"]])
        predictor.release(3)
        await asyncio.gather(*tasks)
    assert predictor.batches[2:] == [["long"]]


async def test_a_slow_batch_holds_up_nobody_else():
    predictor = SeveralPredictor(2)
    async with batching(predictor, size=1) as harness:
        slow = harness.submit("held")
        await until(lambda: predictor.batches == [["held"]])
        for value in "abc":
            assert (await harness.submit(value)).outputs == (value,)
        assert not slow.done()
        predictor.held.set()
        await slow


async def test_the_model_chooses_what_goes_together_and_the_rest_keeps_its_order():
    predictor = SeveralPredictor(1, gated=True)
    async with batching(predictor, size=3) as harness:
        tasks = [harness.submit("x")]
        await until(lambda: predictor.batches == [["x"]])
        waiting = ("aa", "b", "cc", "d", "ee", "ff")
        for number, value in enumerate(waiting, start=1):
            tasks.append(harness.submit(value))
            await until(lambda n=number: harness.batcher.queue_length == n)
        predictor.release(10)
        results = await asyncio.gather(*tasks)
    assert predictor.batches == [["x"], ["aa", "cc", "ee"], ["b", "d"], ["ff"]]
    assert [result.outputs[0] for result in results] == ["x", *waiting]


async def test_a_request_over_several_batches_comes_back_in_order():
    predictor = SeveralPredictor(4)
    async with batching(predictor, size=2) as harness:
        result = await harness.submit(*range(23))
    assert result.outputs == tuple(range(23))


async def test_a_batch_that_fails_fails_its_requests_alone():
    predictor = SeveralPredictor(2, gated=True)
    async with batching(predictor, size=1) as harness:
        bad, good = harness.submit("fail"), harness.submit("good")
        await until(lambda: len(predictor.batches) == 2)
        predictor.release(3)
        with captured_logs() as logs, pytest.raises(ModelFailureError):
            await bad
        assert (await good).outputs == ("good",)
        assert (await harness.submit("next")).outputs == ("next",)
    assert len(logs.events("batch_failed")) == 1


async def test_a_lost_model_ends_it_while_others_compute_and_wait():
    predictor = SeveralPredictor(2)
    predictor.fatal_error = ModelLostError("gone")
    async with batching(predictor, size=1) as harness:
        computing = harness.submit("held")
        await until(lambda: len(predictor.batches) == 1)
        # Both are queued before the batcher has its turn; the second finds no room.
        bad, waiting = harness.submit("fail"), harness.submit("waits")
        with pytest.raises(ModelLostError, match="gone"):
            await harness.running
        with pytest.raises(ModelFailureError):
            await bad
        for task in (computing, waiting):
            with pytest.raises(NotReadyError, match="The server is stopping"):
                await task
        assert predictor.batches == [["held"], ["fail"]]
        predictor.held.set()


async def test_cancelling_ends_all_requests_at_once():
    predictor = SeveralPredictor(2, gated=True)
    async with batching(predictor, size=1) as harness:
        tasks = [harness.submit(value) for value in "abc"]
        await until(lambda: len(predictor.batches) == 2)
        harness.running.cancel()
        for task in tasks:
            with pytest.raises(NotReadyError):
                await task
        assert harness.batcher.is_computing  # the threads cannot be interrupted


async def test_the_wait_after_a_batch_ends_with_the_delay_or_with_as_many_inputs():
    predictor = SeveralPredictor(2, gated=True)
    async with batching(predictor, size=4, delay_seconds=NEVER_SECONDS) as harness:
        first = [harness.submit("a")]
        await until(lambda: len(predictor.batches) == 1)
        first.append(harness.submit("b"))
        await until(lambda: len(predictor.batches) == 2)
        waiting = harness.submit("c")
        await until(lambda: harness.batcher.queue_length == 1)
        predictor.release(1)
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        # One in the batch that ended and one in the queue: two are waited for.
        assert len(predictor.batches) == 2
        returning = harness.submit("d")
        await until(lambda: len(predictor.batches) == 3)
        assert predictor.batches[2] == ["c", "d"]
        predictor.release(2)
        await asyncio.gather(*first, waiting, returning)


async def test_a_server_computes_several_batches_and_closes_the_model():
    predictor = SeveralPredictor(2, gated=True)
    async with running_server(predictor, max_batch_size=1) as running:
        requests = [asyncio.create_task(running.post(value)) for value in "ab"]
        await until(lambda: len(predictor.batches) == 2)
        predictor.release(2)
        responses = await asyncio.gather(*requests)
        assert [response.json() for response in responses] == [["a"], ["b"]]
        assert not predictor.is_closed
    assert predictor.is_closed


async def test_a_server_ends_when_its_model_is_lost_while_idle():
    predictor = SeveralPredictor(2)
    with captured_logs() as logs:
        async with running_server(predictor) as running:
            predictor.lost.set_exception(ModelLostError("6 workers died"))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while running.server.service.state.value != "draining":
                    await asyncio.sleep(0.001)
    [line] = logs.events("model_lost")
    assert line["message"] == "6 workers died"
    [stopped] = logs.events("stopped")
    assert stopped["exit_code"] == 1


async def test_a_long_answer_is_written_while_others_are_answered():
    predictor = SeveralPredictor(2)
    async with running_server(predictor) as running:
        long = asyncio.create_task(running.post("long"))
        await until(predictor.is_rendering.is_set)
        assert (await running.post("short")).json() == ["short"]
        assert (await running.client.get("/ping")).status_code == 200
        assert not long.done()
        predictor.held.set()
        assert (await long).json() == ["long"]
    # The short one on the event loop: the way to another thread would cost more.
    assert predictor.rendered_by == ["render_0", threading.current_thread().name]
