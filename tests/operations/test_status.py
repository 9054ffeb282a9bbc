"""`slipway status`: what is served, beside what was declared."""

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slipway.cli.status import print_status
from slipway.errors import UserError
from slipway.operations.against import compare_with_deployed
from slipway.operations.logs import LogEvent, find_groups, follow_log, read_log
from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.scaling import compare_scaling
from slipway.operations.status import Status, find_status
from slipway.planning.plan import DeploymentPlan
from tests.support.plans import plan_for, renamed, with_config
from tests.support.projects import model_config
from tests.support.slipway_stack import MODEL, NAME, SCALING, SlipwayStack

TOPIC = "arn:aws:sns:us-east-1:123456789012:errors"


def test_nothing_is_deployed(stack: SlipwayStack) -> None:
    with pytest.raises(UserError) as caught:
        find_status("gpt-local", stack.access, plan=None, log_line_count=5)
    (problem,) = caught.value.problems
    assert problem.message == (
        "gpt is not deployed in `local`: there is no stack and no endpoint gpt-local"
    )
    assert problem.remedy == "Deploy it with `cdk deploy gpt -c models=gpt -c env=local`."
    with pytest.raises(UserError, match="autoscaling is not deployed in `local`"):
        compare_with_deployed(planned("ml.g4dn.xlarge"), stack.access)


@pytest.fixture(scope="module")
def deployed(stack: SlipwayStack) -> Iterator[SlipwayStack]:
    assert stack.create("ok") == "CREATE_COMPLETE"
    yield stack
    assert stack.delete() == "DELETE_COMPLETE"


def planned(instance_type: str, **sections: dict[str, Any]) -> DeploymentPlan:
    """A plan of the model that is deployed, with other settings in some sections."""
    changed = {"endpoint": {"instances": [instance_type]}, "autoscaling": SCALING, **sections}
    return plan_for(model_config(MODEL, **changed))


def seen(stack: SlipwayStack, plan: DeploymentPlan | None = None, lines: int = 0) -> Status:
    return find_status(NAME, stack.access, plan=plan, log_line_count=lines)


def test_all_is_well(deployed: SlipwayStack) -> None:
    status = seen(deployed, lines=5)
    assert status.troubles() == []
    assert status.endpoint is not None
    assert status.endpoint.served == status.declared
    served = status.endpoint.served
    assert served.image is not None
    assert served.image.endswith("/slipway/tensorrt:trt10.13-0123456789abcdef")
    assert served.artifact == deployed.publish("ok")
    (variant,) = status.endpoint.variants
    assert (variant.name, variant.instance_types) == ("AllTraffic", ("ml.g4dn.xlarge",))
    assert (variant.current_instance_count, variant.desired_instance_count) == (2, 2)
    assert (variant.min_instance_count, variant.max_instance_count) == (2, 6)
    assert sorted(alarm.name.rpartition("-")[0] for alarm in status.alarms) == [
        f"{NAME}-AlarmsModelLatencyE3B6059D",
        f"{NAME}-AlarmsServerErrorRate7C02E9F9",
    ]
    (line,) = status.log_lines
    assert line.text.startswith("stand-in ok pid ")
    assert line.stream.startswith("AllTraffic/i-")


def test_the_log_is_read_and_followed(deployed: SlipwayStack) -> None:
    logs, start = deployed.access.client("logs"), datetime.now(UTC) - timedelta(hours=1)
    (group,) = find_groups(logs, NAME)
    assert group == f"/aws/sagemaker/Endpoints/{NAME}"
    before = [line.text for line in read_log(logs, group, start)]
    assert len(before) == 1
    waits: list[float] = []

    def wait(seconds: float) -> None:
        """In place of the time that passes, a line comes; then the reader stops."""
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt
        stream = logs.describe_log_streams(logGroupName=group)["logStreams"][0]["logStreamName"]
        event = {"timestamp": int(time.time() * 1000), "message": "Traceback: it broke"}
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=[event])

    seen: list[str] = []

    def follow() -> None:
        for line in follow_log(logs, group, start, wait):
            seen.append(line.text)

    with pytest.raises(KeyboardInterrupt):
        follow()
    assert seen == [*before, "Traceback: it broke"]
    assert find_groups(logs, "nothing-local") == []


@pytest.mark.parametrize(
    ("text", "is_error"),
    [
        ('{"level": "error", "event": "no engine"}', True),
        ('{"level": "info", "event": "error budget is full"}', False),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory", True),
        ("Traceback (most recent call last):", True),
        ("E0101 12:00:00 model_lifecycle.cc:621] failed to load: Exception", True),
        ("I0101 12:00:00 server.cc:674] terrors of the deep", False),
        ("200 POST /invocations", False),
    ],
)
def test_a_line_of_an_error_is_known(text: str, is_error: bool) -> None:
    assert LogEvent(datetime.now(UTC), "group", "stream", text).is_error is is_error


def test_settings_of_the_files_that_are_not_deployed_are_listed(
    deployed: SlipwayStack, capsys: pytest.CaptureFixture[str]
) -> None:
    def differences(plan: DeploymentPlan) -> list[tuple[str, str | None, str | None]]:
        status = seen(deployed, plan)
        assert status.troubles() == []
        assert bool(status.notes()) is bool(status.differences)
        return [dataclasses.astuple(item) for item in status.differences]

    assert differences(planned("ml.g4dn.xlarge")) == []

    def consequences(plan: DeploymentPlan) -> dict[str, str]:
        served = replace(plan, artifact=replace(plan.artifact, digest=deployed.publish("ok")))
        status = seen(deployed, served)
        found = status.consequences(served)
        assert found is not None
        return {each.setting: each.consequence for each in found.effects}

    assert consequences(planned("ml.g4dn.xlarge")) == {}
    changed = planned(
        "ml.g4dn.2xlarge",
        serving={"max_batch_size": 4},
        autoscaling={**SCALING, "max_instance_count": 8, "scale_in_cooldown_seconds": 60},
        alarms={"model_latency_p99_milliseconds": 400, "client_error_rate_percent": 5},
    )
    assert differences(changed) == [
        ("variable SLIPWAY_MAX_BATCH_SIZE", "8", "4"),
        ("endpoint.instances", "ml.g4dn.xlarge", "ml.g4dn.2xlarge"),
        ("alarms.model_latency_p99_milliseconds", "600", "400"),
        ("alarms.client_error_rate_percent", None, "5"),
        ("autoscaling.max_instance_count", "6", "8"),
        ("autoscaling.scale_in_cooldown_seconds", "300", "60"),
    ]
    settings = [setting for setting, *_ in differences(changed)]
    assert consequences(changed) == {
        **dict.fromkeys(settings[:2], "new fleet"),
        **dict.fromkeys(settings[2:], "in place"),
    }
    queue = {"input": "s3://a/in/", "output": "s3://a/out/", "error_topic_arn": TOPIC}
    queued = plan_for(model_config(MODEL, endpoint={"mode": "async", "async_inference": queue}))
    assert consequences(queued)["endpoint.mode"] == "refused by AWS"
    shadowed = planned("ml.g4dn.xlarge", endpoint={"shadow": {"sampling_percent": 25}})
    assert differences(shadowed) == [
        ("endpoint.shadow.sampling_percent", None, "25"),
        ("endpoint.shadow.instances", None, "ml.g4dn.xlarge"),
        ("endpoint.shadow.instance_count", None, "2"),
    ]
    fixed = with_config(planned("ml.g4dn.xlarge"), autoscaling=None)
    assert differences(fixed) == [
        ("autoscaling.min_instance_count", "2", None),
        ("autoscaling.max_instance_count", "6", None),
        ("autoscaling.target_invocations_per_instance_per_minute", "600", None),
        ("autoscaling.scale_in_cooldown_seconds", "300", None),
        ("autoscaling.scale_out_cooldown_seconds", "60", None),
    ]
    assert compare_with_deployed(changed, deployed.access).verdict == "new fleet"
    # The section is one difference.
    assert consequences(fixed) == {"autoscaling": "new fleet"}
    # Other weights, too.
    status = seen(deployed, changed)
    effects = status.consequences(changed)
    assert effects is not None
    assert "artifact" in [each.setting for each in effects.effects]
    print_status(status, None, effects)
    lines = capsys.readouterr().out.splitlines()
    change = "alarms.model_latency_p99_milliseconds: 400 in the files, 600 deployed (in place)"
    assert f"{'':11}{change}" in lines
    assert (
        "deploy     new fleet: 2 to 8 x ml.g4dn.2xlarge start beside the old fleet, within "
        "minutes; quota of 8"
    ) in lines
    status = seen(deployed, fixed)
    assert status.notes() == [
        "5 settings of the files are not deployed; `cdk diff` shows the change"
    ]
    print_status(status, None)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "OK  in service, on what its stack declares",
        "NOTE  5 settings of the files are not deployed; `cdk diff` shows the change",
    ]
    assert "files      autoscaling.min_instance_count: not set in the files, 2 deployed" in lines


def test_an_alarm_is_trouble(deployed: SlipwayStack) -> None:
    name = seen(deployed).alarms[0].name
    cloudwatch = deployed.stacks.client("cloudwatch")
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="too late")
    status = seen(deployed)
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="in time")
    assert status.troubles() == [f"alarm {name}: too late"]


def test_preflight_says_what_autoscaling_means_for_a_change(deployed: SlipwayStack) -> None:
    plan = planned("ml.g4dn.xlarge")
    assert parted(compare_scaling(plan, deployed.access)) == ([], [])
    found, problems = parted(compare_scaling(planned("ml.g4dn.2xlarge"), deployed.access))
    assert found == [
        "autoscaling: AllTraffic does not scale while it goes from ml.g4dn.xlarge to "
        "ml.g4dn.2xlarge; it is deregistered before the update and registered again after it"
    ]
    assert problems == []
    dropped = with_config(plan, autoscaling=None)
    assert parted(compare_scaling(dropped, deployed.access))[0] == [
        "autoscaling: AllTraffic is deregistered first, since the files do not scale it any more"
    ]
    (variant,) = plan.variants
    renamed = dataclasses.replace(plan, variants=(dataclasses.replace(variant, name="other"),))
    assert parted(compare_scaling(renamed, deployed.access))[0] == [
        "autoscaling: AllTraffic is deregistered first, since the variant goes"
    ]


def test_preflight_names_a_target_that_the_stack_did_not_make(deployed: SlipwayStack) -> None:
    # Another stack's name: this one has made nothing.
    plan = renamed(planned("ml.g4dn.2xlarge"), stack_name="elsewhere")
    found, (problem,) = parted(compare_scaling(plan, deployed.access))
    assert found == []
    assert problem.message == (
        "the variant AllTraffic is a scalable target that its stack did not make: SageMaker "
        "refuses to remove the variant or to change its instances"
    )
    assert problem.remedy.startswith(
        "Run `aws application-autoscaling deregister-scalable-target --service-namespace sagemaker "
        "--scalable-dimension sagemaker:variant:DesiredInstanceCount --resource-id "
        f"endpoint/{NAME}/variant/AllTraffic`"
    )
    # Nothing is refused where nothing of the variant changes.
    same = renamed(with_config(planned("ml.g4dn.xlarge"), autoscaling=None), stack_name="elsewhere")
    assert parted(compare_scaling(same, deployed.access)) == ([], [])
