import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.hosting.families import find_program, programs
from slipway.embedded_aws.hosting.families.program import CannotLaunchError
from slipway.embedded_aws.hosting.fleets.rollout import Rollout, rollout_of
from slipway.embedded_aws.processes.process import SupervisedProcess, start_program
from tests.support.processes import is_running
from tests.support.waiting import eventually

HERE = Path(__file__).parent


def launch(script: str, directory: Path, grace_seconds: float = 30.0) -> SupervisedProcess:
    return start_program(
        command=[sys.executable, "-u", "-c", script],
        environment={"PATH": os.environ["PATH"]},
        directory=directory,
        on_line=print,
        grace_seconds=grace_seconds,
    )


@pytest.mark.parametrize(
    ("script", "status"),
    [("raise SystemExit(5)", 5), ("import os; os.kill(os.getpid(), 9)", 128 + 9)],
)
def test_exit_status_is_the_programs(tmp_path, script, status):
    process = launch(f"print('out'); {script}", tmp_path)
    assert process.exited.wait(10)
    assert process.exit_status == status
    assert process.last_lines == ["out"]


def test_program_that_does_not_exist(tmp_path):
    process = start_program(
        command=["/no/such/program"], environment={}, directory=tmp_path,
        on_line=print, grace_seconds=1,
    )  # fmt: skip
    assert process.exited.wait(10)
    assert process.exit_status == 127
    assert process.last_lines == [
        "cannot run /no/such/program: [Errno 2] No such file or directory"
    ]


def test_sigterm_reaches_the_program(tmp_path):
    process = launch(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit('drained'))\n"
        "print('ready'); time.sleep(60)",
        tmp_path,
    )
    eventually(lambda: process.last_lines)
    process.stop()
    assert process.last_lines == ["ready", "drained"]
    assert process.exit_status == 1


# The fork has the supervisor's handlers until then.
SLOW_TO_LOSE_ITS_HANDLERS = """\
import signal, sys, time
from slipway.embedded_aws.processes import supervisor

set_wakeup_fd = signal.set_wakeup_fd

def slowly(fd):
    if fd == -1:
        time.sleep(0.3)
    return set_wakeup_fd(fd)

signal.set_wakeup_fd = slowly
sys.exit(supervisor.main(["60", "sleep", "60"]))
"""


def test_sigterm_reaches_a_program_just_after_its_fork():
    command = [sys.executable, "-c", SLOW_TO_LOSE_ITS_HANDLERS]
    with subprocess.Popen(command, cwd=HERE.parents[2], stdin=subprocess.PIPE) as process:
        process.stdin.close()
        assert process.wait(30) == 128 + signal.SIGTERM


# The fork has no group of its own until then.
SLOW_TO_LEAD_A_GROUP = """\
import os, sys, time
from slipway.embedded_aws.processes import supervisor

lead_a_group = os.setsid

def slowly():
    os.write(1, b"forked\\n")
    time.sleep(1)
    lead_a_group()

os.setsid = slowly
sys.exit(supervisor.main(["0", "sleep", "60"]))
"""


def test_a_program_is_killed_just_after_its_fork():
    command = [sys.executable, "-c", SLOW_TO_LEAD_A_GROUP]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=HERE.parents[2], stdin=pipe, stdout=pipe) as process:
        assert process.stdout.readline() == b"forked\n"
        process.send_signal(signal.SIGUSR1)
        assert process.wait(30) == 128 + 9


def test_what_the_program_started_ends_with_it(tmp_path):
    process = launch(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid); time.sleep(60)",
        tmp_path,
    )
    eventually(lambda: process.last_lines)
    grandchild = int(process.last_lines[0])
    assert is_running(grandchild)
    process.stop()
    eventually(lambda: not is_running(grandchild))


def test_family_is_told_by_the_repository():
    registry = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
    tagged = find_program(programs(), f"{registry}/slipway/tensorrt:abc")
    assert tagged == find_program(programs(), f"{registry}/slipway/tensorrt@sha256:{'0' * 64}")
    assert tagged == find_program(programs(), f"{registry}/slipway/search/tensorrt:abc")
    assert tagged.command[1:] == ("-m", "containers.tensorrt", "serve")
    with pytest.raises(CannotLaunchError, match=r"Known repositories: .*slipway/tensorrt"):
        find_program(programs(), f"{registry}/tensorrt:abc")


def blue_green(kind: str, wait_seconds: int = 60, **more: Any) -> dict[str, Any]:
    sizes = {name: more.pop(name) for name in ("CanarySize", "LinearStepSize") if name in more}
    routing = {"Type": kind, "WaitIntervalInSeconds": wait_seconds, **sizes}
    return {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing, **more}}


def percent(value: int) -> dict[str, Any]:
    return {"Type": "CAPACITY_PERCENT", "Value": value}


def rolling(batch_percent: int) -> dict[str, Any]:
    policy = {"MaximumBatchSize": percent(batch_percent), "WaitIntervalInSeconds": 60}
    return {"RollingUpdatePolicy": policy}


TWO = {"CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1}}
# Two waits of 600 s and the old fleet's 600 s are as long as the limit, and AWS's guide has it.
GUIDE = {"TerminationWaitInSeconds": 600, "MaximumExecutionTimeoutInSeconds": 1800}


@pytest.mark.parametrize(
    ("config", "variants", "expected"),
    [
        (None, 1, {"wait_seconds": 0.0}),
        ({}, 1, {"wait_seconds": 0.0}),
        (blue_green("ALL_AT_ONCE"), 1, {}),
        (blue_green("CANARY", **TWO), 1, {"shares": (0.1, 1.0)}),
        (blue_green("LINEAR", LinearStepSize=percent(30)), 1, {"shares": (0.3, 0.6, 0.9, 1.0)}),
        (rolling(50), 1, {"shares": (0.5, 1.0), "beside": 0.5}),
        (rolling(25), 1, {"shares": (0.25, 0.5, 0.75, 1.0), "beside": 0.25}),
        # Several variants have no rolling deployment.
        (rolling(25), 2, {"wait_seconds": 0.0}),
        (
            blue_green("CANARY", 600, CanarySize=percent(30), **GUIDE),
            1,
            {
                "shares": (0.3, 1.0),
                "wait_seconds": 600.0,
                "termination_wait_seconds": 600.0,
                "limit_seconds": 1800,
            },
        ),
    ],
)
def test_rollouts(config, variants, expected):
    rollout = rollout_of(config, instance_count=10, variant_count=variants)
    assert rollout == Rollout(**{"wait_seconds": 60.0, **expected})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"AutoRollbackConfiguration": {"Alarms": []}},
            "needs either a BlueGreenUpdatePolicy or a RollingUpdatePolicy",
        ),
        (blue_green("CANARY"), "CanarySize is required for traffic routing CANARY"),
        (
            blue_green("CANARY", CanarySize=percent(60)),
            "The canary size must be between 1 and 50 percent of the capacity; it is 60 percent",
        ),
        (
            blue_green("LINEAR", LinearStepSize=percent(5)),
            "The linear step size must be between 10 and 50 percent of the capacity",
        ),
        (
            blue_green(
                "ALL_AT_ONCE", TerminationWaitInSeconds=600, MaximumExecutionTimeoutInSeconds=660
            ),
            "MaximumExecutionTimeoutInSeconds 660 must be greater than the sum of the waits, 660",
        ),
    ],
)
def test_rollout_rules(config, message):
    with pytest.raises(ApiError) as caught:
        rollout_of(config, instance_count=10)
    assert message in caught.value.message
