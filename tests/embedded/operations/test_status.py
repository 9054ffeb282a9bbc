"""`slipway status`: what is served, beside what was declared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slipway.errors import UserError
from slipway.operations.status import find_status
from tests.support.slipway_stack import MODEL, NAME, SlipwayStack, slipway_stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path_factory.mktemp("status"), time_scale=0.005) as stack:
        yield stack


def test_nothing_is_deployed(stack: SlipwayStack) -> None:
    with pytest.raises(UserError) as caught:
        find_status(NAME, stack.access, plan=None, log_line_count=5)
    (problem,) = caught.value.problems
    assert problem.message == (
        f"{MODEL} is not deployed in `local`: there is no stack and no endpoint {NAME}"
    )
    assert problem.remedy == f"Deploy it with `cdk deploy {MODEL} -c models={MODEL} -c env=local`."


@pytest.fixture(scope="module")
def deployed(stack: SlipwayStack) -> Iterator[SlipwayStack]:
    assert stack.create("ok") == "CREATE_COMPLETE"
    yield stack
    assert stack.delete() == "DELETE_COMPLETE"


def test_all_is_well(deployed: SlipwayStack) -> None:
    status = find_status(NAME, deployed.access, plan=None, log_line_count=5)
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


def test_an_alarm_is_trouble(deployed: SlipwayStack) -> None:
    name = find_status(NAME, deployed.access, plan=None, log_line_count=0).alarms[0].name
    cloudwatch = deployed.stacks.client("cloudwatch")
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="too late")
    status = find_status(NAME, deployed.access, plan=None, log_line_count=0)
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="in time")
    assert status.troubles() == [f"alarm {name}: too late"]


def test_an_update_past_the_stack_shows(deployed: SlipwayStack) -> None:
    before = find_status(NAME, deployed.access, plan=None, log_line_count=0)
    assert before.declared is not None
    sagemaker = deployed.stacks.client("sagemaker")
    config = sagemaker.describe_endpoint_config(EndpointConfigName=before.declared.config)
    sagemaker.create_endpoint_config(
        EndpointConfigName="ByHand", ProductionVariants=config["ProductionVariants"]
    )
    sagemaker.update_endpoint(EndpointName=NAME, EndpointConfigName="ByHand")
    changing = find_status(NAME, deployed.access, plan=None, log_line_count=0)
    assert changing.in_progress
    assert changing.troubles() == []
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=NAME, WaiterConfig={"Delay": 1})
    after = find_status(NAME, deployed.access, plan=None, log_line_count=0)
    assert after.troubles() == [
        f"it serves ByHand, not the {before.declared.config} that its stack declares: "
        "a silent rollback, or a change by hand"
    ]
    assert after.declared == before.declared

    # The configuration can be deleted under the endpoint.
    sagemaker.delete_endpoint_config(EndpointConfigName="ByHand")
    bare = find_status(NAME, deployed.access, plan=None, log_line_count=0).endpoint
    assert bare is not None
    assert (bare.served.config, bare.served.image, bare.served.artifact) == (
        "ByHand", None, None,
    )  # fmt: skip
    sagemaker.delete_endpoint(EndpointName=NAME)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=NAME, WaiterConfig={"Delay": 1})
    gone = find_status(NAME, deployed.access, plan=None, log_line_count=0)
    assert gone.troubles() == ["there is no endpoint: nothing is served"]
