"""Batches of inputs: one at a time, and several for a model with several devices."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

from containers.serving.errors import (
    InvalidRequestError,
    ModelFailureError,
    NotReadyError,
    QueueFullError,
)
from containers.serving.predictor import ModelLostError
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
    """Computes so many batches at a time; texts of the first one's length go together."""

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

    def choose(self, waiting, most):
        same = [i for i, value in enumerate(waiting) if len(str(value)) == len(str(waiting[0]))]
        return same[:most]

    def predict(self, batch):
        outputs = super().predict(batch)
        if "held" in batch:
            assert self.held.wait(PATIENCE_SECONDS)
        return outputs

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


async def test_a_lone_input_on_an_idle_server_does_not_wait_for_the_delay():
    async with batching(EchoPredictor(), delay_seconds=NEVER_SECONDS) as harness:
        for value in ("a", "b"):
            async with asyncio.timeout(5):
                result = await harness.submit(value)
            assert result.outputs == (value,)
    assert harness.predictor.batches == [["a"], ["b"]]


async def test_what_arrives_during_a_batch_forms_the_next_in_order_of_arrival():
    async with batching(EchoPredictor(gated=True), size=3) as harness:
        tasks = [await harness.occupy()]
        for value in "abcde":
            tasks.append(harness.submit(value))
            await harness.queued(len(tasks) - 1)
        harness.predictor.release(3)
        results = await asyncio.gather(*tasks)
    assert harness.predictor.batches == [["first"], ["a", "b", "c"], ["d", "e"]]
    assert [result.outputs for result in results] == [("first",), *[(v,) for v in "abcde"]]
    assert [result.batch_size for result in results] == [1, 3, 3, 3, 2, 2]


async def test_the_wait_after_a_batch_ends_with_the_delay():
    async with batching(EchoPredictor(gated=True), delay_seconds=0.02) as harness:
        first = await harness.occupy()
        waiting = harness.submit("a")
        await harness.queued(1)
        harness.predictor.release(2)
        await asyncio.gather(first, waiting)
    assert harness.predictor.batches == [["first"], ["a"]]


async def test_a_full_queue_refuses_the_whole_request():
    async with batching(EchoPredictor(gated=True), queue=3) as harness:
        first = await harness.occupy()
        held = harness.submit("a", "b")
        await harness.queued(2)
        with pytest.raises(
            QueueFullError, match=r"^The queue holds 2 of at most 3 inputs; retry later\.$"
        ):
            await harness.submit("c", "d")
        assert harness.batcher.queue_length == 2
        harness.predictor.release(2)
        await asyncio.gather(first, held)


async def test_a_request_that_could_never_fit_is_the_clients_fault():
    async with batching(EchoPredictor(), queue=3) as harness:
        with pytest.raises(
            InvalidRequestError, match=r"^The request holds 4 inputs; the limit is 3\.$"
        ):
            await harness.submit(1, 2, 3, 4)


async def test_a_predictor_that_loses_an_output_is_a_model_failure():
    class Forgetful(EchoPredictor):
        def predict(self, batch):
            return list(batch)[1:]

    async with batching(Forgetful()) as harness:
        with pytest.raises(ModelFailureError):
            await harness.submit("a", "b")


@pytest.mark.parametrize(("clients", "batches"), [(1, 24), (4, 6), (8, 3), (16, 3)])
async def test_batches_grow_with_concurrency(clients, batches):
    """24 requests from closed-loop clients: with a fixed time per batch, fewer batches is speed."""
    predictor = EchoPredictor(gated=True)
    rounds, rest = divmod(24, clients)
    sent = [rounds + (client < rest) for client in range(clients)]
    async with batching(predictor, size=8, delay_seconds=NEVER_SECONDS) as harness:

        async def client(requests):
            for _ in range(requests):
                await harness.submit("x")

        # All arrive before the first batch starts, as they would while another one computes.
        tasks = [asyncio.create_task(client(requests)) for requests in sent]
        predictor.release(100)
        async with asyncio.timeout(5):
            await asyncio.gather(*tasks)
    assert len(predictor.batches) == batches


async def test_as_many_batches_are_computed_as_the_model_can():
    predictor = SeveralPredictor(3, gated=True)
    async with batching(predictor, size=2) as harness:
        tasks = [await harness.occupy(value) for value in "abc"]
        tasks += [harness.submit(value) for value in "defg"]
        await harness.queued(4)
        assert sorted(predictor.batches) == [["a"], ["b"], ["c"]]
        assert harness.batcher.rows == 3
        assert harness.batcher.is_computing
        predictor.release(5)
        results = await asyncio.gather(*tasks)
    assert sorted(predictor.batches[3:]) == [["d", "e"], ["f", "g"]]
    assert [result.outputs for result in results] == [(value,) for value in "abcdefg"]
    assert not harness.batcher.is_computing


async def test_only_full_batches_of_inputs_that_go_together_go_ahead():
    predictor = SeveralPredictor(1, gated=True, batches_ahead=1)
    async with batching(predictor, size=2) as harness:
        tasks = [await harness.occupy("a"), harness.submit("b"), harness.submit("long")]
        await harness.queued(2)
        # They wait for another input of their kind, or for the first batch.
        assert harness.batcher.rows == 1
        tasks.append(harness.submit("c"))
        await until(lambda: predictor.batches == [["a"], ["b", "c"]])
        # A third batch does not go ahead, full as it is.
        tasks.append(harness.submit("next"))
        await harness.queued(2)
        assert harness.batcher.rows == 3
        predictor.release(3)
        results = await asyncio.gather(*tasks)
    assert predictor.batches == [["a"], ["b", "c"], ["long", "next"]]
    assert [result.outputs[0] for result in results] == ["a", "b", "long", "c", "next"]


async def test_a_batch_that_fails_fails_its_requests_alone():
    predictor = SeveralPredictor(2, gated=True)
    async with batching(predictor, size=2) as harness:
        good = await harness.occupy("good")
        bad = [harness.submit("fail"), harness.submit("near")]
        await until(lambda: len(predictor.batches) == 2)
        with captured_logs() as logs:
            predictor.release(3)
            errors = await asyncio.gather(*bad, return_exceptions=True)
        assert [type(error) for error in errors] == [ModelFailureError] * 2
        assert (await good).outputs == ("good",)
        assert (await harness.submit("next")).outputs == ("next",)
    assert predictor.batches[1:] == [["fail", "near"], ["next"]]
    assert len(logs.events("batch_failed")) == 1


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


async def test_a_slow_batch_holds_up_nobody_else():
    predictor = SeveralPredictor(2)
    async with batching(predictor, size=1) as harness:
        slow = await harness.occupy("held")
        for value in "abc":
            assert (await harness.submit(value)).outputs == (value,)
        assert not slow.done()
        predictor.held.set()
        await slow


async def test_the_model_chooses_what_goes_together_and_the_rest_keeps_its_order():
    predictor = SeveralPredictor(1, gated=True)
    async with batching(predictor, size=3) as harness:
        tasks = [await harness.occupy("x")]
        waiting = ("aa", "b", "cc", "d", "ee", "ff")
        for number, value in enumerate(waiting, start=1):
            tasks.append(harness.submit(value))
            await harness.queued(number)
        predictor.release(10)
        results = await asyncio.gather(*tasks)
    assert predictor.batches == [["x"], ["aa", "cc", "ee"], ["b", "d"], ["ff"]]
    assert [result.outputs[0] for result in results] == ["x", *waiting]


async def test_a_request_over_several_batches_comes_back_in_order():
    predictor = SeveralPredictor(4)
    async with batching(predictor, size=2) as harness:
        result = await harness.submit(*range(23))
    assert result.outputs == tuple(range(23))


async def test_a_lost_model_ends_it_while_others_compute_and_wait():
    predictor = SeveralPredictor(2)
    predictor.fatal_error = ModelLostError("gone")
    async with batching(predictor, size=1) as harness:
        computing = await harness.occupy("held")
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
        first = [await harness.occupy("a"), await harness.occupy("b")]
        waiting = harness.submit("c")
        await harness.queued(1)
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
            await until(lambda: running.server.service.state.value == "draining")
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
