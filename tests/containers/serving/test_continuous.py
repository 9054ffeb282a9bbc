"""Continuous batching, on a predictor whose steps a test lets through one by one."""

import asyncio
import contextlib
import random
import re

import pytest

from containers.serving.errors import (
    ModelFailureError,
    NotReadyError,
    QueueFullError,
    RequestExpiredError,
)
from tests.containers.serving.harness import NEVER_SECONDS, batching
from tests.support.servers import CountdownPredictor, until
from tests.support.waiting import eventually

pytestmark = pytest.mark.anyio


async def test_what_arrives_joins_before_the_next_step_and_leaves_when_it_is_answered():
    async with batching(CountdownPredictor(gated=True)) as harness:
        long = harness.submit(("long", 5))
        await harness.begun(1)
        short = harness.submit(("short", 2))
        await harness.queued(1)
        harness.predictor.release(3)
        assert (await short).outputs == ("short",)
        assert not long.done()
        harness.run_freely()
        assert (await long).outputs == ("long",)
    # A joining input takes its first step by itself.
    assert harness.predictor.steps[:3] == [["long"], ["short"], ["long", "short"]]


async def test_what_waits_joins_without_a_turn_of_the_event_loop():
    async with batching(CountdownPredictor(gated=True), size=1) as harness:
        tasks = [harness.submit(("first", 1)), harness.submit(("next", 2))]
        await harness.begun(1)
        harness.run_freely()
        # The event loop has no turn meanwhile, as if it read from many connections.
        eventually(lambda: harness.predictor.steps == [["first"], ["next"], ["next"]])
        assert not any(task.done() for task in tasks)
        assert [(await task).outputs for task in tasks] == [("first",), ("next",)]


async def test_inputs_wait_until_there_is_room_in_order_of_arrival():
    async with batching(CountdownPredictor(gated=True), size=2) as harness:
        tasks = [harness.submit((name, steps)) for name, steps in [("a", 3), ("b", 4), ("c", 1)]]
        await harness.begun(1)
        assert harness.batcher.queue_length == 1
        harness.run_freely()
        results = [await task for task in tasks]
    assert max(len(step) for step in harness.predictor.steps) == 2
    assert harness.predictor.steps == [["a", "b"], ["a", "b"], ["a", "b"], ["c"], ["b"]]
    assert [result.batch_size for result in results] == [2, 2, 2]


async def test_rows_count_and_an_input_that_is_too_wide_goes_alone():
    async with batching(CountdownPredictor(gated=True), size=4) as harness:
        tasks = [harness.submit((name, 2, rows)) for name, rows in [("a", 3), ("b", 2), ("c", 9)]]
        await harness.begun(1)
        harness.run_freely()
        await asyncio.gather(*tasks)
    assert harness.predictor.steps == [["a"], ["a"], ["b"], ["b"], ["c"], ["c"]]


async def test_a_cancelled_request_leaves_queue_and_batch():
    async with batching(CountdownPredictor(gated=True), size=1) as harness:
        computing, waiting = harness.submit(("computing", 9)), harness.submit(("waiting", 9))
        await harness.begun(1)
        waiting.cancel()
        computing.cancel()
        await until(lambda: computing.done() and waiting.done())
        harness.predictor.release(1)
        await until(lambda: harness.predictor.left == ["computing"])
        harness.run_freely()
        assert (await harness.submit(("next", 1))).outputs == ("next",)
    assert harness.predictor.steps == [["computing"], ["next"]]


async def test_the_deadline_ends_a_request_and_frees_its_rows():
    async with batching(CountdownPredictor(gated=True)) as harness:
        late = harness.submit(("late", 9), seconds=0.05)
        patient = harness.submit(("patient", 3))
        with pytest.raises(RequestExpiredError):
            await late
        harness.run_freely()
        assert (await patient).outputs == ("patient",)
    assert harness.predictor.left == ["late"]


async def test_a_failure_ends_all_that_were_in_the_batch_and_nobody_else():
    async with batching(CountdownPredictor(gated=True), size=2) as harness:
        failing = [harness.submit(("good", 5)), harness.submit(("fail", 5))]
        after = harness.submit(("after", 2))
        await harness.begun(1)
        harness.run_freely()
        for task in failing:
            with pytest.raises(ModelFailureError, match="The model failed to compute an answer"):
                await task
        assert (await after).outputs == ("after",)


async def test_what_would_wait_too_long_is_refused_at_once():
    async with batching(CountdownPredictor(gated=True), size=1, queue=500) as harness:
        # Sixteen inputs that took a while each: then the estimate is known.
        clock = asyncio.get_running_loop().time
        released, begun = [clock()], []
        known = [harness.submit((str(number), 1)) for number in range(16)]
        for number in range(16):
            await harness.begun(number + 1)
            begun.append(clock())
            await asyncio.sleep(0.01)
            harness.predictor.release()
            released.append(clock())
        await asyncio.gather(*known)
        # An input took from the release of the one before until the next had begun, at most.
        ended = [*begun[1:], clock()]
        longest_seconds = max(end - start for start, end in zip(released[:-1], ended, strict=True))
        waiting = [harness.submit((str(number), 1)) for number in range(100)]
        await harness.queued(99)
        asked_at = clock()
        with pytest.raises(QueueFullError) as refused:
            await harness.submit(("hurried", 1), seconds=0.5)
        found = re.search(r"99 inputs wait, which take about (\d+) seconds", str(refused.value))
        assert found is not None, refused.value
        most_seconds = 100 * longest_seconds
        assert 1 <= int(found[1]) <= round(most_seconds)
        assert 0.3 < refused.value.retry_after_seconds < most_seconds + clock() - asked_at
        patient = harness.submit(("patient", 1))
        harness.run_freely()
        await asyncio.gather(*waiting, patient)


async def test_after_an_end_as_many_are_waited_for_as_finished():
    async with batching(CountdownPredictor(gated=True), delay_seconds=NEVER_SECONDS) as harness:
        both = [harness.submit(("a", 1)), harness.submit(("b", 1))]
        await harness.begun(1)
        harness.run_freely()
        await asyncio.gather(*both)
        first = harness.submit(("c", 1))
        await harness.queued(1)
        second = harness.submit(("d", 1))
        await asyncio.gather(first, second)
    assert harness.predictor.steps == [["a", "b"], ["c", "d"]]


async def test_the_wait_for_others_ends_and_what_goes_on_does_not_stop_for_it():
    async with batching(CountdownPredictor(gated=True), delay_seconds=0.2) as harness:
        several = [harness.submit(("long", 10_000)), *(harness.submit((n, 1)) for n in "ab")]
        await harness.begun(1)
        harness.predictor.release(1)
        await asyncio.gather(*several[1:])
        lone = harness.submit(("lone", 1))
        await harness.queued(1)
        harness.predictor.release(50)
        await harness.begun(52)
        assert ["lone"] not in harness.predictor.steps
        await asyncio.sleep(0.25)  # what is tested is that time passes: the delay is over
        harness.predictor.release(2)
        assert (await lone).outputs == ("lone",)
        several[0].cancel()


async def test_stopping_ends_every_request():
    async with batching(CountdownPredictor(gated=True), size=1) as harness:
        tasks = [harness.submit(("computing", 9)), harness.submit(("waiting", 9))]
        await harness.begun(1)
    for task in tasks:
        with pytest.raises(NotReadyError, match="The server is stopping"):
            await task


@pytest.mark.parametrize("seed", range(20))
async def test_any_mix_is_answered_whole_and_nothing_is_left(seed):
    """Random arrivals, lengths, widths and departures, without gates: real races of threads."""
    chance = random.Random(seed)  # noqa: S311  # not for secrets
    predictor = CountdownPredictor()
    async with batching(predictor, size=5, queue=1000, delay_seconds=0.001) as harness:
        tasks = []
        for number in range(200):
            names = [f"{number}.{part}" for part in range(chance.randint(1, 4))]
            inputs = [(name, chance.randint(1, 6), chance.randint(1, 3)) for name in names]
            tasks.append((names, harness.submit(*inputs)))
            if chance.random() < 0.2:
                chance.choice(tasks)[1].cancel()
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() / 500)
        for names, task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                assert list((await task).outputs) == names
        await until(lambda: not harness.batcher.is_computing)
        assert harness.batcher.queue_length == 0
        assert (await harness.submit(("last", 2))).outputs == ("last",)
    assert not predictor._batch
