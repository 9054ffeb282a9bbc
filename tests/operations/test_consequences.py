"""What the planning says of an edit is what the embedded AWS then does with it.

Each base is one stack that lives through its edits: a step deploys over what the step before left.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from slipway.planning.consequences import Consequence, consequences
from slipway.planning.plan import DeploymentPlan
from slipway.planning.review import RENAMED, review
from tests.support.plans import plan_for
from tests.support.projects import model_config
from tests.support.slipway_stack import SCALING, SlipwayStack

pytestmark = [pytest.mark.size("all"), pytest.mark.timeout(600)]

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

Sections = Mapping[str, Any]
# Sections over those of `tests/support/projects.py`.
BASES: Mapping[str, Sections] = {
    "fixed": {"endpoint": {"instance_count": 1}},
    "scaled": {"autoscaling": SCALING},
    "queued": {"endpoint": {**ASYNC, "instance_count": 1}},
    "sleeping": {"endpoint": SLEEPING},
}
PLACE, FLEET = Consequence.IN_PLACE, Consequence.NEW_FLEET
REFUSED, DESTROY = Consequence.REFUSED, Consequence.DESTROY


def _of_queue(**fields: Any) -> Sections:
    return {"endpoint": {"async_inference": fields}}


def _of_copies(**fields: Any) -> Sections:
    return {"endpoint": {"scale_to_zero": fields}}


@dataclass(frozen=True)
class Step:
    """Edits that are deployed together over the step before, and the consequence of each.

    If one of several in place made a new fleet, so would the deployment. Of several new fleets,
    `tests/synth/test_every_field.py` shows that each replaces the configuration or the model alone.

    Attributes:
        returns: whether the next deployment takes the edits back, and not the end of the chain.
    """

    expected: Consequence
    edits: Mapping[str, Sections]
    returns: bool = False


# Each way back has the consequence of the way there. It is deployed where it removes or adds what
# no other step does, and otherwise at the end of the chain, which goes back to the base at once.
CHAINS: Mapping[str, tuple[Step, ...]] = {
    "fixed": (
        Step(
            PLACE,
            {
                "log retention": {"endpoint": {"log_retention_days": 7}},
                "dashboard": {"endpoint": {"dashboard": False}},
                "protection": {"endpoint": {"termination_protection": True}},
                "threshold": {"alarms": {"model_latency_p99_milliseconds": 700}},
                "another alarm": {"alarms": {"memory_utilization_percent": 80}},
                "tag": {"tags": {"team": "search"}},
            },
            returns=True,
        ),
        Step(REFUSED, {"queue": {"endpoint": ASYNC}}),
        Step(REFUSED, {"copies": {"endpoint": SLEEPING}}),
        Step(DESTROY, {"name": {"name": "another"}}),
        Step(FLEET, {"shadow": {"endpoint": {"shadow": {"sampling_percent": 50}}}}, returns=True),
        Step(FLEET, {"variants": {"endpoint": {"variants": VARIANTS}}}, returns=True),
        Step(FLEET, {"instance type": {"endpoint": {"instances": ["ml.g4dn.2xlarge"]}}}),
        Step(
            FLEET,
            {"second type": {"endpoint": {"instances": ["ml.g4dn.2xlarge", "ml.g4dn.xlarge"]}}},
        ),
        Step(FLEET, {"container's setting": {"serving": {"max_batch_size": 4}}}),
        Step(FLEET, {"network isolation": {"endpoint": {"network_isolation": False}}}),
        Step(
            FLEET,
            {
                "timeout": {"endpoint": {"container_startup_health_check_timeout_seconds": 700}},
                "routing": {"endpoint": {"routing": "random"}},
                "metrics": {"endpoint": {"metrics": {"enhanced": True}}},
                "instance count": {"endpoint": {"instance_count": 2}},
            },
        ),
        Step(FLEET, {"rollout": {"rollout": {"strategy": "linear", "step_percent": 50}}}),
    ),
    "scaled": (
        Step(
            PLACE,
            {
                "minimum": {"autoscaling": {"min_instance_count": 1}},
                "maximum": {"autoscaling": {"max_instance_count": 8}},
                "target": {"autoscaling": {"target_invocations_per_instance_per_minute": 300}},
                "cooldown": {"autoscaling": {"scale_in_cooldown_seconds": 600}},
                "schedule": {"autoscaling": {"schedules": [SCHEDULE]}},
                "steps": {"autoscaling": {"steps": [{"from_times_target": 2, "add_instances": 3}]}},
                "alarm at the maximum": {"alarms": {"at_max_capacity": True}},
            },
            returns=True,
        ),
        Step(FLEET, {"no autoscaling": {"autoscaling": None}}, returns=True),
        Step(FLEET, {"scaled type": {"endpoint": {"instances": ["ml.g4dn.2xlarge"]}}}),
        Step(FLEET, {"count at creation": {"endpoint": {"instance_count": 3}}}),
    ),
    "queued": (
        Step(PLACE, {"place of requests": _of_queue(input="s3://other/")}, returns=True),
        Step(REFUSED, {"no queue": {"endpoint": {"mode": "realtime", "async_inference": None}}}),
        Step(FLEET, {"concurrency": _of_queue(max_concurrent_invocations_per_instance=4)}),
    ),
    "sleeping": (
        Step(
            PLACE,
            {"target of copies": _of_copies(target_concurrent_requests_per_copy=9)},
            returns=True,
        ),
        Step(REFUSED, {"no copies": {"endpoint": {"mode": "realtime", "scale_to_zero": None}}}),
        Step(FLEET, {"memory of a copy": _of_copies(copy_memory_mib=2048)}),
        Step(FLEET, {"setting of copies": {"serving": {"max_batch_size": 4}}}),
        Step(FLEET, {"more copies": _of_copies(max_copies=3)}),
    ),
}


def merged(sections: Sections, others: Sections) -> dict[str, Any]:
    """Returns sections with others over them, to any depth."""
    found = dict(sections)
    for name, value in others.items():
        old = found.get(name)
        merges = isinstance(value, Mapping) and isinstance(old, Mapping)
        found[name] = merged(old, value) if merges else value
    return found


@dataclass(frozen=True)
class Deployment:
    """One deployment of a chain: over which sections, which, and what each edit leads to."""

    before: Sections
    after: Sections
    expected: Consequence
    edits: Mapping[str, Sections]


def deployments(base: str) -> Iterator[Deployment]:
    """Yields a chain, with what the last deployment takes back."""
    first = now = merged({"name": base}, BASES[base])
    for step in CHAINS[base]:
        after = now
        for edit in step.edits.values():
            after = merged(after, edit)
        yield Deployment(now, after, step.expected, step.edits)
        if step.returns:
            yield Deployment(after, now, step.expected, {})
        elif step.expected not in (REFUSED, DESTROY):  # nothing else was deployed
            now = after
    if now != first:
        yield Deployment(now, first, FLEET, {})


def plan_of(sections: Sections) -> DeploymentPlan:
    return plan_for(model_config(**sections))


Template = Callable[[Sections], dict[str, Any]]


@pytest.fixture(scope="module")
def template(stack: SlipwayStack, rendered: Any) -> Template:
    """Gives the template of the sections of a base or of a step."""
    states: list[Sections] = []
    for each in (each for base in BASES for each in deployments(base)):
        states += [sections for sections in (each.before, each.after) if sections not in states]
    texts = rendered({f"stack-{n}": plan_of(state) for n, state in enumerate(states)})
    return lambda sections: stack.deployable(texts[f"stack-{states.index(sections)}"])


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


@pytest.mark.parametrize("base", BASES)
def test_edits_do_what_the_plan_says(base: str, stack: SlipwayStack, template: Template):
    chain = list(deployments(base))
    first = plan_of(chain[0].before)
    assert stack.stacks.create(first.stack_name, template(chain[0].before)) == "CREATE_COMPLETE"
    for each in chain:
        old, new = plan_of(each.before), plan_of(each.after)
        for name, edit in each.edits.items():
            alone = plan_of(merged(each.before, edit))
            assert consequences(old, alone).verdict is each.expected, name
            assert consequences(alone, old).verdict is each.expected, name
        assert consequences(old, new).verdict is each.expected
        if old.config.name != new.config.name:
            reviewed = review(old, new)
            assert reviewed is not None
            assert (reviewed.verdict, reviewed.is_destructive) == (RENAMED, True)
        done = deploy(stack, template(each.after), old, new)
        assert done is each.expected, f"{', '.join(each.edits) or 'the way back'} of {base}"
