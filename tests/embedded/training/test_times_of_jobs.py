"""Training jobs that use up their time, or do not end when they are told to."""

from collections.abc import Iterator

import pytest

from tests.embedded.training.conftest import Account, started
from tests.support.processes import is_running


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """An account in which a minute is over after 0.6 seconds."""
    with started(tmp_path_factory.mktemp("hurried"), time_scale=0.01) as account:
        yield account


@pytest.mark.size("all")
def test_a_job_that_takes_too_long_is_stopped(hurried):
    found = hurried.done("slow", StoppingCondition={"MaxRuntimeInSeconds": 300})
    assert (found["TrainingJobStatus"], found["SecondaryStatus"]) == (
        "Stopped", "MaxRuntimeExceeded",
    )  # fmt: skip
    files = hurried.files(f"compile/{found['TrainingJobName']}/output/model/")
    assert files == {"half": b"half", "saved": b"saved in time"}


@pytest.mark.size("all")
def test_a_program_that_ignores_the_end_is_killed(hurried):
    name = hurried.start("stubborn")
    pid = hurried.pid(name)
    hurried.sagemaker.stop_training_job(TrainingJobName=name)
    assert hurried.describe(name)["TrainingJobStatus"] in ("Stopping", "Stopped")
    found = hurried.ended(name)
    assert (found["TrainingJobStatus"], found["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert not is_running(pid)
