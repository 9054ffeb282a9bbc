import asyncio

import pytest

from containers.serving.errors import InvalidRequestError, ModelFailureError, QueueFullError
from tests.containers.serving.harness import NEVER_SECONDS, batching
from tests.support.servers import EchoPredictor
from tests.support.waiting import eventually

pytestmark = pytest.mark.anyio


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


async def test_the_next_batch_does_not_wait_for_the_event_loop():
    async with batching(EchoPredictor(gated=True)) as harness:
        tasks = [await harness.occupy(), harness.submit("next")]
        await harness.queued(1)
        harness.predictor.release(2)
        # The event loop has no turn meanwhile, as if it read from many connections.
        eventually(lambda: harness.predictor.batches == [["first"], ["next"]])
        assert not any(task.done() for task in tasks)
        assert [(await task).outputs for task in tasks] == [("first",), ("next",)]


async def test_a_request_with_many_inputs_spans_batches_and_comes_back_in_order():
    async with batching(EchoPredictor(), size=3) as harness:
        result = await harness.submit(*range(8))
    assert harness.predictor.batches == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert result.outputs == tuple(range(8))


async def test_after_a_batch_the_next_waits_for_as_many_as_were_in_flight():
    async with batching(EchoPredictor(gated=True), delay_seconds=NEVER_SECONDS) as harness:
        first = await harness.occupy()
        waiting = harness.submit("a")
        await harness.queued(1)
        harness.predictor.release()
        await first  # its client sends the next request, which joins the one that waits
        returning = harness.submit("b")
        harness.predictor.release()
        async with asyncio.timeout(5):
            await asyncio.gather(waiting, returning)
    assert harness.predictor.batches == [["first"], ["a", "b"]]


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


async def test_a_failing_batch_fails_its_requests_and_no_others():
    async with batching(EchoPredictor(gated=True)) as harness:
        tasks = [await harness.occupy(), harness.submit("fail"), harness.submit("neighbour")]
        await harness.queued(2)
        harness.predictor.release(2)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result) for result in results[1:]] == [ModelFailureError] * 2
        assert results[0].outputs == ("first",)
        harness.predictor.release()
        assert (await harness.submit("next")).outputs == ("next",)


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
