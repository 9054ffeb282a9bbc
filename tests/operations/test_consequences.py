"""What the planning says of an edit is what the embedded AWS then does with it, there and back."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from slipway.planning.consequences import Consequence, consequences
from slipway.planning.plan import DeploymentPlan
from stacks.assembly import plan_stack
from tests.support.plans import plan_for
from tests.support.projects import DIGEST, LOCAL, model_config
from tests.support.slipway_stack import SlipwayStack, publish_functions, slipway_stack
from tests.synth.assemblies import new_app

pytestmark = [pytest.mark.size("all"), pytest.mark.timeout(600)]

SCALING = {
    "min_instance_count": 2,
    "max_instance_count": 6,
    "target_invocations_per_instance_per_minute": 600,
}
SCHEDULE = {
    "name": "later",
    "at": "at(2099-01-01T00:00:00)",
    "min_instance_count": 3,
    "max_instance_count": 6,
}
QUEUE = {
    "input": "s3://in/requests/",
    "output": "s3://out/answers/",
    "error_topic_arn": "arn:aws:sns:us-east-1:123456789012:errors",
}
COPIES = {"max_copies": 2, "target_concurrent_requests_per_copy": 5}
ASYNC = {"mode": "async", "async_inference": QUEUE}
SLEEPING = {"mode": "scale_to_zero", "instance_count": 1, "scale_to_zero": COPIES}
VARIANTS = [{"name": "one", "weight": 1}, {"name": "two", "weight": 1}]

# Sections over those of `tests/support/projects.py`.
BASES: Mapping[str, Mapping[str, Any]] = {
    "fixed": {},
    "scaled": {"autoscaling": SCALING},
    "queued": {"endpoint": ASYNC},
    "sleeping": {"endpoint": SLEEPING},
}
PLACE, FLEET = Consequence.IN_PLACE, Consequence.NEW_FLEET
REFUSED, DESTROY = Consequence.REFUSED, Consequence.DESTROY


@dataclass(frozen=True)
class Edit:
    """An edit of a base: other sections, and the consequence that a reader expects."""

    base: str
    expected: Consequence
    sections: Mapping[str, Any]


EDITS = {
    "instance type": Edit("fixed", FLEET, {"endpoint": {"instances": ["ml.g4dn.2xlarge"]}}),
    "second type": Edit(
        "fixed", FLEET, {"endpoint": {"instances": ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"]}}
    ),
    "instance count": Edit("fixed", FLEET, {"endpoint": {"instance_count": 3}}),
    "container's setting": Edit("fixed", FLEET, {"serving": {"max_batch_size": 4}}),
    "timeout": Edit(
        "fixed", FLEET, {"endpoint": {"container_startup_health_check_timeout_seconds": 700}}
    ),
    "routing": Edit("fixed", FLEET, {"endpoint": {"routing": "random"}}),
    "network isolation": Edit("fixed", FLEET, {"endpoint": {"network_isolation": False}}),
    "metrics": Edit("fixed", FLEET, {"endpoint": {"metrics": {"enhanced": True}}}),
    "shadow": Edit("fixed", FLEET, {"endpoint": {"shadow": {"sampling_percent": 50}}}),
    "variants": Edit("fixed", FLEET, {"endpoint": {"variants": VARIANTS}}),
    "rollout": Edit("fixed", FLEET, {"rollout": {"strategy": "linear", "step_percent": 50}}),
    "log retention": Edit("fixed", PLACE, {"endpoint": {"log_retention_days": 7}}),
    "dashboard": Edit("fixed", PLACE, {"endpoint": {"dashboard": False}}),
    "protection": Edit("fixed", PLACE, {"endpoint": {"termination_protection": True}}),
    "threshold": Edit("fixed", PLACE, {"alarms": {"model_latency_p99_milliseconds": 700}}),
    "another alarm": Edit("fixed", PLACE, {"alarms": {"memory_utilization_percent": 80}}),
    "tag": Edit("fixed", PLACE, {"tags": {"team": "search"}}),
    "queue": Edit("fixed", REFUSED, {"endpoint": ASYNC}),
    "copies": Edit("fixed", REFUSED, {"endpoint": SLEEPING}),
    "name": Edit("fixed", DESTROY, {"name": "another"}),
    "minimum": Edit("scaled", PLACE, {"autoscaling": {"min_instance_count": 1}}),
    "maximum": Edit("scaled", PLACE, {"autoscaling": {"max_instance_count": 8}}),
    "target": Edit(
        "scaled", PLACE, {"autoscaling": {"target_invocations_per_instance_per_minute": 300}}
    ),
    "cooldown": Edit("scaled", PLACE, {"autoscaling": {"scale_in_cooldown_seconds": 600}}),
    "schedule": Edit("scaled", PLACE, {"autoscaling": {"schedules": [SCHEDULE]}}),
    "steps": Edit(
        "scaled",
        PLACE,
        {"autoscaling": {"steps": [{"from_times_target": 2, "add_instances": 3}]}},
    ),
    "alarm at the maximum": Edit("scaled", PLACE, {"alarms": {"at_max_capacity": True}}),
    "scaled type": Edit("scaled", FLEET, {"endpoint": {"instances": ["ml.g4dn.2xlarge"]}}),
    "count at creation": Edit("scaled", FLEET, {"endpoint": {"instance_count": 3}}),
    "no autoscaling": Edit("scaled", FLEET, {"autoscaling": None}),
    "concurrency": Edit(
        "queued",
        FLEET,
        {"endpoint": {"async_inference": QUEUE | {"max_concurrent_invocations_per_instance": 4}}},
    ),
    "place of requests": Edit(
        "queued", PLACE, {"endpoint": {"async_inference": QUEUE | {"input": "s3://other/"}}}
    ),
    "no queue": Edit(
        "queued", REFUSED, {"endpoint": {"mode": "realtime", "async_inference": None}}
    ),
    "target of copies": Edit(
        "sleeping",
        PLACE,
        {"endpoint": {"scale_to_zero": COPIES | {"target_concurrent_requests_per_copy": 9}}},
    ),
    "memory of a copy": Edit(
        "sleeping", FLEET, {"endpoint": {"scale_to_zero": COPIES | {"copy_memory_mib": 2048}}}
    ),
    "setting of copies": Edit("sleeping", FLEET, {"serving": {"max_batch_size": 4}}),
    "more copies": Edit(
        "sleeping", FLEET, {"endpoint": {"scale_to_zero": COPIES | {"max_copies": 3}}}
    ),
    "no copies": Edit(
        "sleeping", REFUSED, {"endpoint": {"mode": "realtime", "scale_to_zero": None}}
    ),
}


def plan_of(base: str, edit: Edit | None = None) -> DeploymentPlan:
    sections: dict[str, Any] = {"name": base} | dict(BASES[base])
    for name, value in (edit.sections if edit else {}).items():
        old = sections.get(name)
        merges = isinstance(value, Mapping) and isinstance(old, Mapping)
        sections[name] = {**old, **value} if merges else value
    return plan_for(model_config(**sections))


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path_factory.mktemp("edited"), time_scale=0.005) as stack:
        yield stack


Template = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def template(stack: SlipwayStack, tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Gives the template of a base or of an edit."""
    app = new_app(tmp_path_factory.mktemp("cdk.out"))
    target = cdk.Environment(account=LOCAL.account, region=LOCAL.region)
    plans = {base: plan_of(base) for base in BASES}
    plans |= {name: plan_of(edit.base, edit) for name, edit in EDITS.items()}
    for name, plan in plans.items():
        plan_stack(app, name.replace(" ", "-").replace("'", ""), plan=plan, env=target)
    directory = Path(app.synth().directory)

    def of(name: str) -> dict[str, Any]:
        file = directory / f"{name.replace(' ', '-').replace(chr(39), '')}.template.json"
        content: dict[str, Any] = json.loads(
            file.read_text("utf-8").replace(DIGEST, stack.publish("ok"))
        )
        publish_functions(stack.stacks, content)
        return content

    return of


@pytest.fixture(scope="module")
def bases(stack: SlipwayStack, template: Template) -> None:
    for base in BASES:
        assert stack.stacks.create(f"{base}-local", template(base)) == "CREATE_COMPLETE"


def served(stack: SlipwayStack, name: str) -> dict[str, Any]:
    """Returns what tells one fleet from another: its endpoint, its configuration, its copies."""
    sagemaker = stack.stacks.client("sagemaker")
    endpoint = sagemaker.describe_endpoint(EndpointName=name)
    assert endpoint["EndpointStatus"] == "InService"
    copies = sagemaker.list_inference_components(EndpointNameEquals=name)["InferenceComponents"]
    specifications = [
        sagemaker.describe_inference_component(
            InferenceComponentName=each["InferenceComponentName"]
        )["Specification"]
        for each in copies
    ]
    return {
        "made": endpoint["CreationTime"],
        "fleet": (endpoint["EndpointConfigName"], specifications),
    }


def deploy(
    stack: SlipwayStack, template: Mapping[str, Any], old: DeploymentPlan, new: DeploymentPlan
) -> Consequence:
    """Deploys a template over another one, and returns what it did."""
    before = served(stack, old.endpoint_name)
    if new.stack_name != old.stack_name:
        assert stack.stacks.create(new.stack_name, dict(template)) == "CREATE_COMPLETE"
        assert served(stack, old.endpoint_name) == before  # it stays
        assert stack.stacks.delete(new.stack_name) == "DELETE_COMPLETE"
        return Consequence.DESTROY
    status = stack.stacks.update(old.stack_name, dict(template))
    after = served(stack, old.endpoint_name)
    if status == "UPDATE_ROLLBACK_COMPLETE":
        assert after == before
        return Consequence.REFUSED
    assert status == "UPDATE_COMPLETE"
    if after["made"] != before["made"]:
        return Consequence.GAP
    return Consequence.IN_PLACE if after["fleet"] == before["fleet"] else Consequence.NEW_FLEET


@pytest.mark.usefixtures("bases")
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_does_what_the_plan_says(name: str, stack: SlipwayStack, template: Template):
    edit = EDITS[name]
    old, new = plan_of(edit.base), plan_of(edit.base, edit)
    there, back = consequences(old, new).verdict, consequences(new, old).verdict
    assert there is edit.expected
    assert deploy(stack, template(name), old, new) is there
    if edit.expected in (REFUSED, DESTROY):
        return  # nothing was deployed, and there is no way back
    assert deploy(stack, template(edit.base), new, old) is back
