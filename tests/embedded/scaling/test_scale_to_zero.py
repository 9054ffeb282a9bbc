"""An endpoint of Slipway that goes to zero and wakes, while the test lets minutes pass."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from slipway.client import wait_for_wake
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.operations.invoke.realtime import Request, Wait, invoke
from slipway.operations.leftovers import find_leftovers
from slipway.operations.status import Status, find_status
from tests.embedded.scaling.conftest import hosted_by
from tests.support.projects import LOCAL
from tests.support.slipway_stack import SlipwayStack, slipway_stack
from tests.support.waiting import eventually

MODEL = "scale-to-zero"
NAME = f"{MODEL}-local"
CALLERS = 4


class Sleeper:
    def __init__(self, stack: SlipwayStack) -> None:
        self.stack = stack
        self.hosted = hosted_by(stack)
        self.waiting = stack.access.client(
            "sagemaker-runtime", Config(max_pool_connections=CALLERS)
        )
        wait_for_wake(self.waiting, limit_seconds=60, poll_seconds=0.1)
        self.plain = stack.stacks.client("sagemaker-runtime")

    def ask(self, client: Any, body: bytes = b"ping") -> bytes:
        answer = client.invoke_endpoint(EndpointName=NAME, InferenceComponentName=NAME, Body=body)
        return answer["Body"].read()

    def copies(self) -> tuple[int, int]:
        return self.hosted.copies(NAME)

    def fall_asleep(self) -> None:
        def is_asleep() -> bool:
            if self.copies() == (0, 0) and self.hosted.instances(NAME) == 0:
                return True
            self.stack.stacks.aws.pass_minute()
            return False

        eventually(is_asleep)

    def status(self) -> Status:
        return find_status(NAME, self.stack.access, plan=None, log_line_count=3)

    def wake(self) -> None:
        """Sends requests at the same time to the sleeping endpoint; all of them are answered."""
        bodies = [f"request {number}".encode() for number in range(CALLERS)]
        with ThreadPoolExecutor(CALLERS) as pool:
            waiting = [pool.submit(self.ask, self.waiting, body) for body in bodies]
            self.pass_minutes_until(lambda: all(each.done() for each in waiting))
            assert [each.result() for each in waiting] == bodies
        # Their failed requests raise the alarm for minutes, and have added one copy.
        assert self.copies() == (1, 1)

    def pass_minutes_until(self, is_over: Callable[[], bool]) -> int:
        """Lets minutes pass while no copy runs; returns their number."""
        minutes = 0

        def passed() -> bool:
            nonlocal minutes
            if is_over():
                return True
            if self.copies() != (1, 1):
                self.stack.stacks.aws.pass_minute()
                minutes += 1
            return False

        eventually(passed)
        return minutes


@pytest.fixture(scope="module")
def sleeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sleeper]:
    """One for all tests, each of which begins with a sleep."""
    directory = tmp_path_factory.mktemp("sleeper")
    with slipway_stack(directory, time_scale=0.01, model=MODEL) as stack:
        assert stack.create("slow") == "CREATE_COMPLETE"
        sleeper = Sleeper(stack)
        # It begins with a copy: SageMaker is reported to refuse to create a component without one.
        assert sleeper.copies() == (1, 1)
        assert sleeper.ask(sleeper.plain) == b"ping"
        assert sleeper.status().troubles() == []
        yield sleeper
        # The endpoint can be destroyed in its sleep.
        sleeper.fall_asleep()
        assert stack.delete() == "DELETE_COMPLETE"
        assert stack.running() == []
        assert find_leftovers(MODEL, LOCAL, stack.access) == []


@pytest.mark.parametrize(
    "wakes",
    [
        pytest.param(3, marks=pytest.mark.size("all")),
        pytest.param(100, marks=[pytest.mark.size("deep"), pytest.mark.timeout(1800)]),
    ],
)
def test_no_request_is_lost(sleeper, wakes):
    for _ in range(wakes):
        sleeper.fall_asleep()
        sleeper.wake()
    alarms = {alarm.name: alarm for alarm in sleeper.status().alarms if not alarm.scales}
    assert {alarm.state for alarm in alarms.values()} <= {"OK", "INSUFFICIENT_DATA"}


@pytest.mark.size("all")
def test_updates_of_a_sleeping_and_of_a_waking_endpoint(sleeper):
    sleeper.fall_asleep()
    stack = sleeper.stack
    assert stack.update("ok") == "UPDATE_COMPLETE"
    assert sleeper.copies() == (0, 0)
    sleeper.wake()
    served = sleeper.status().endpoint
    assert served.served.artifact == stack.publish("ok")
    # Another instance type is another endpoint configuration. The component stays.
    template = stack.template("ok")
    [config] = [
        each
        for each in template["Resources"].values()
        if each["Type"] == "AWS::SageMaker::EndpointConfig"
    ]
    [variant] = config["Properties"]["ProductionVariants"]
    variant["InstanceType"] = "ml.g5.12xlarge"
    assert stack.stacks.update(NAME, template) == "UPDATE_COMPLETE"
    moved = sleeper.status().endpoint
    assert [each.instance_types for each in moved.variants] == [("ml.g5.12xlarge",)]
    sleeper.wake()
    sleeper.fall_asleep()
    sleeper.wake()


@pytest.mark.size("all")
def test_a_wake_soon_after_the_sleep_may_be_undone_and_is_repeated(sleeper):
    """CloudWatch's alarm for scaling in has the quiet minutes of before in its range."""
    aws = sleeper.stack.stacks.aws
    while sleeper.copies() != (0, 0):
        aws.pass_minute()
    sleeper.wake()
    for _ in range(10):
        aws.pass_minute()
    assert sleeper.copies() == (0, 0)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(sleeper.ask, sleeper.waiting)
        with pytest.raises(ClientError):
            sleeper.ask(sleeper.plain)
        assert sleeper.pass_minutes_until(answer.done) <= 5
        assert answer.result() == b"ping"


@pytest.mark.size("all")
def test_the_command_waits_and_tells_how_long(sleeper):
    request = Request(NAME, b"ping", "text/plain", "*/*", None, NAME)
    access = sleeper.stack.access
    sleeper.fall_asleep()
    with pytest.raises(UserError) as caught:
        invoke(request, access)
    [problem] = caught.value.problems
    assert problem.code is Code.ASLEEP
    assert problem.message == f"{NAME} sleeps: it has scaled to zero, and this request wakes it"
    assert problem.remedy == (
        f"Wait for it with `slipway invoke {MODEL} --env local --wait 900`, or ask again in some "
        "minutes."
    )
    shown: list[float] = []
    short = Wait(0.05, shown.append, poll_seconds=0.02)
    with pytest.raises(UserError) as caught:
        invoke(request, access, short)
    [problem] = caught.value.problems
    assert problem.message == f"{NAME} is not awake after 0.05 s"
    assert problem.remedy == (
        f"Wait longer. `slipway status {MODEL} --env local` shows if a copy of the model is "
        "starting, and why one did not start."
    )
    assert shown
    shown.clear()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(invoke, request, access, Wait(60, shown.append, poll_seconds=0.1))
        sleeper.pass_minutes_until(waiting.done)
        answer = waiting.result()
    assert answer.body == b"ping"
    # The wait is told by itself. The latency is the last attempt's.
    assert shown[-1] <= answer.waited_seconds
    assert 0 < answer.latency_seconds < answer.waited_seconds
    assert invoke(request, access).waited_seconds == 0


@pytest.mark.size("all")
def test_a_sleeping_endpoint_is_no_trouble(sleeper):
    sleeper.fall_asleep()
    status = sleeper.status()
    assert status.troubles() == []
    assert status.notes() == [
        "it sleeps: no copy runs, and the next request wakes it within minutes"
    ]
    with pytest.raises(ClientError, match="has no capacity to process this request"):
        sleeper.ask(sleeper.plain)
    sleeper.pass_minutes_until(lambda: sleeper.copies() == (1, 1))
    assert sleeper.status().troubles() == []
    assert sleeper.ask(sleeper.plain) == b"ping"
    assert sleeper.status().log_group == f"/aws/sagemaker/InferenceComponents/{NAME}"
