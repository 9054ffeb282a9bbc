"""The function around an endpoint's update, on its own: an account in memory, call by call."""

import copy
import json

import pytest

from tests.synth.endpoint_updates import POLICY, SCALING, Account, ask, resource_id, variant

STEPS = {
    "PolicyName": "steps",
    "PolicyType": "StepScaling",
    "StepScalingPolicyConfiguration": {
        "AdjustmentType": "ChangeInCapacity",
        "Cooldown": 60,
        "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 2}],
    },
}
STEPPED = SCALING | {"Policies": json.dumps([POLICY, STEPS])}
TOPIC = "arn:aws:sns:eu-west-1:210987654321:topic"
CHANGES = {
    "another type": [variant("a", "ml.g5.2xlarge")],
    "a pool": [variant("a", "ml.g5.xlarge", "ml.g5.2xlarge")],
    "renamed": [variant("b", "ml.g5.xlarge")],
    "dropped": [variant("a", "ml.g5.xlarge", scaled=False)],
    "dropped with another type": [variant("a", "ml.g5.2xlarge", scaled=False)],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_variant_is_deregistered_before_the_update(change: str):
    account = Account(a="ml.g5.xlarge", other="ml.g5.xlarge")
    answer = ask(account, "Update", *CHANGES[change], variant("other", "ml.g5.xlarge"))
    assert (answer["Status"], answer["Reason"]) == ("SUCCESS", "deregistered a")
    assert account.calls == ["deregister a"]
    # Once more, as when Lambda is called twice: nothing is left to do.
    ask(account, "Update", *CHANGES[change], variant("other", "ml.g5.xlarge"))
    assert account.calls == ["deregister a"]


def test_after_the_update_the_target_and_its_policy_are_made_anew():
    account = Account(a="ml.g5.xlarge")
    before = account.definitions()
    wanted = variant("a", "ml.g5.2xlarge")
    ask(account, "Update", wanted)
    account.live = {"a": "ml.g5.2xlarge"}
    answer = ask(account, "Update", wanted, step="After")
    assert answer["Reason"] == "registered a; put the policy invocations-per-instance of a"
    assert account.targets == {resource_id("a"): {"MinCapacity": 2, "MaxCapacity": 6}}
    assert account.definitions() == before


def test_what_the_stack_has_not_made_is_left_to_cloudformation_and_to_others():
    account = Account(a="ml.g5.xlarge")
    account.made.clear()
    account.live |= {"new": "ml.g5.xlarge"}
    changed = [variant("a", "ml.g5.2xlarge"), variant("new", "ml.g5.xlarge")]
    assert ask(account, "Update", *changed)["Reason"] == "Nothing to do."
    assert account.calls == []


def test_a_target_whose_making_failed_is_not_the_stacks():
    account = Account(a="ml.g5.xlarge")
    for resource in account.made:
        resource["ResourceStatus"] = "CREATE_FAILED"
    ask(account, "Update", variant("a", "ml.g5.2xlarge"))
    assert account.calls == []


def test_unchanged_variants_cause_no_work():
    account = Account(a="ml.g5.xlarge", pool="ml.g5.xlarge ml.g5.2xlarge")
    same = [variant("a", "ml.g5.xlarge"), variant("pool", "ml.g5.xlarge", "ml.g5.2xlarge")]
    for kind, step in (("Create", "Before"), ("Update", "Before"), ("Update", "After")):
        assert ask(account, kind, *same, step=step)["Reason"] == "Nothing to do."
    assert account.calls == []
    assert account.waits == []


def test_a_new_stack_has_no_endpoint_yet():
    account = Account()
    account.make("a")
    assert ask(account, "Create", variant("a", "ml.g5.xlarge"))["Status"] == "SUCCESS"
    assert account.calls == []


def test_a_busy_endpoint_is_waited_for_and_not_for_ever():
    account = Account(a="ml.g5.xlarge")
    account.statuses = ["Updating", "Updating", "InService"]
    assert ask(account, "Update", variant("a", "ml.g5.2xlarge"))["Status"] == "SUCCESS"
    assert account.waits == [10.0, 10.0]
    account.statuses = ["Updating"]
    answer = ask(account, "Update", variant("a", "ml.g5.2xlarge"))
    assert (answer["Status"], answer["Reason"]) == (
        "FAILED",
        "The endpoint tiny-local is still Updating. Wait until it is InService, then deploy again "
        "(or continue the rollback of the stack).",
    )


def test_a_concurrent_update_is_tried_again():
    account = Account(a="ml.g5.xlarge")
    account.concurrent_updates = 2
    assert ask(account, "Update", variant("a", "ml.g5.2xlarge"))["Status"] == "SUCCESS"
    assert account.calls == ["deregister a"]
    account = Account(a="ml.g5.xlarge")
    account.concurrent_updates = 9
    answer = ask(account, "Update", variant("a", "ml.g5.2xlarge"))
    assert answer["Status"] == "FAILED"
    assert "Try again." in answer["Reason"]


def test_a_stack_of_an_older_slipway_is_not_changed_at_once():
    account = Account(a="ml.g5.xlarge")
    answer = ask(account, "Create", variant("a", "ml.g5.2xlarge"))
    assert (answer["Status"], answer["Reason"]) == (
        "FAILED",
        "The autoscaling of a was deployed by an older Slipway, which cannot be undone together "
        "with a change of instances or variants. Deploy once without that change, then deploy the "
        "change.",
    )
    assert account.calls == []
    # Autoscaling alone can be dropped: CloudFormation deletes the target after the update.
    assert ask(account, "Create", variant("a", "ml.g5.xlarge", scaled=False))["Status"] == "SUCCESS"
    assert account.calls == []


def test_a_rolled_back_deployment_puts_the_targets_back_as_they_were():
    account = Account(a="ml.g5.xlarge", b="ml.g5.xlarge")
    suspended = {"DynamicScalingInSuspended": True}
    account.targets[resource_id("a")]["SuspendedState"] = suspended
    targets, policies = copy.deepcopy(account.targets), account.definitions()
    undo = ask(account, "Create", step="Undo")["PhysicalResourceId"]
    assert len(undo) <= 1024
    ask(account, "Update", variant("b", "ml.g5.2xlarge"))
    assert account.targets == {}
    account.stack_status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    answer = ask(account, "Delete", step="Undo", PhysicalResourceId=undo)
    assert answer["Reason"] == "registered a as it was; registered b as it was"
    assert account.targets == targets
    assert account.definitions() == policies


@pytest.mark.parametrize(
    "status", ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"]
)
def test_a_deployment_that_is_not_taken_back_is_not_undone(status: str):
    account = Account(a="ml.g5.xlarge")
    undo = ask(account, "Create", step="Undo")["PhysicalResourceId"]
    ask(account, "Update", variant("b", "ml.g5.xlarge"))
    account.stack_status = status
    answer = ask(account, "Delete", step="Undo", PhysicalResourceId=undo)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", undo)
    assert account.targets == {}


# As a custom resource has them: CloudFormation makes every number a text.
SCHEDULES = [
    {
        "ScheduledActionName": "workday",
        "Schedule": "cron(0 7 ? * MON-FRI *)",
        "Timezone": "Europe/Zurich",
        "ScalableTargetAction": {"MinCapacity": "4", "MaxCapacity": "12"},
    },
    {
        "ScheduledActionName": "hourly",
        "Schedule": "rate(1 hour)",
        "ScalableTargetAction": {"MinCapacity": "2", "MaxCapacity": "6"},
    },
]
PUT = [
    SCHEDULES[0] | {"ScalableTargetAction": {"MinCapacity": 4, "MaxCapacity": 12}},
    SCHEDULES[1] | {"ScalableTargetAction": {"MinCapacity": 2, "MaxCapacity": 6}},
]


def test_a_target_that_is_registered_again_has_its_schedules():
    account = Account(a="ml.g5.xlarge")
    account.schedules[resource_id("a")] = copy.deepcopy(PUT)
    changed = variant("a", "ml.g5.2xlarge") | {"Scaling": SCALING | {"Schedules": SCHEDULES}}
    ask(account, "Update", changed)
    assert account.schedules == {}
    account.live["a"] = "ml.g5.2xlarge"
    ask(account, "Update", changed, step="After")
    assert account.schedules == {resource_id("a"): PUT}
    # A target that stayed registered keeps them, and they are not put again.
    ask(account, "Update", changed, step="After")
    assert account.schedules == {resource_id("a"): PUT}


TWENTY_SCHEDULES = [
    {
        "ScheduledActionName": f"{day}-{hour}",
        "Schedule": f"cron({7 * hour} {hour} ? * {day.upper()} *)",
        "Timezone": "America/Argentina/Buenos_Aires",
        "ScalableTargetAction": {"MinCapacity": hour, "MaxCapacity": 3 * hour},
    }
    for day in ("mon", "tue", "wed", "thu")
    for hour in (3, 5, 7, 8, 11)
]


@pytest.fixture
def stepped() -> Account:
    """A stack with a step policy, its alarm, and an alarm of another kind."""
    account = Account(a="ml.g5.xlarge")
    account.make_alarm("steps", account.make_policy("a", STEPS))
    account.make_alarm("errors", TOPIC)
    return account


def test_the_alarm_of_a_step_policy_follows_it(stepped: Account):
    first = stepped.alarms["steps"]
    wanted = variant("a", "ml.g5.2xlarge") | {"Scaling": STEPPED}
    ask(stepped, "Update", wanted)
    assert stepped.policies == {}
    stepped.live["a"] = "ml.g5.2xlarge"
    answer = ask(stepped, "Update", wanted, step="After")
    assert answer["Reason"] == (
        "registered a; put the policy invocations-per-instance of a; put the policy steps of a"
    )
    assert stepped.definitions() == {
        resource_id("a"): {"invocations-per-instance": POLICY, "steps": STEPS}
    }
    assert stepped.alarms["steps"] == first
    answer = ask(stepped, "Update", wanted, step="Alarms")
    assert answer["Reason"] == "pointed the alarm steps at its policy"
    live = stepped.policies[resource_id("a")]["steps"]["PolicyARN"]
    assert first["AlarmActions"] != [live]
    kept = {key: value for key, value in first.items() if key != "InsufficientDataActions"}
    assert stepped.alarms["steps"] == kept | {"AlarmActions": [live]}
    assert stepped.alarms["errors"]["AlarmActions"] == [TOPIC]
    # CloudFormation may put the alarm again, with the ARN that it knows.
    stepped.alarms["steps"] = first
    ask(stepped, "Update", wanted, step="Alarms")
    assert stepped.alarms["steps"]["AlarmActions"] == [live]


def test_an_alarm_with_a_live_policy_is_left_alone(stepped: Account):
    for kind in ("Create", "Update", "Delete"):
        answer = ask(stepped, kind, variant("a", "ml.g5.xlarge"), step="Alarms")
        assert answer["Reason"] == "Nothing to do."
    assert stepped.calls == []


def test_a_log_that_cannot_be_kept_fails_no_rollback():
    account = Account()
    account.stack_status = "ROLLBACK_IN_PROGRESS"
    # The account has no logs.
    answer = ask(account, "Delete", variant("a", "ml.g5.xlarge"))
    assert answer["Status"] == "SUCCESS"
    assert answer["Reason"].startswith("could not keep or delete a log: ")


def test_a_deployment_that_is_taken_back_points_the_alarms_back(stepped: Account):
    policies = stepped.definitions()
    undo = ask(stepped, "Create", step="Undo")["PhysicalResourceId"]
    ask(stepped, "Update", variant("b", "ml.g5.xlarge"))
    assert stepped.policies == {}
    stepped.stack_status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    answer = ask(stepped, "Delete", step="Undo", PhysicalResourceId=undo)
    assert answer["Reason"] == "registered a as it was; pointed the alarm steps at its policy"
    assert stepped.definitions() == policies
    live = stepped.policies[resource_id("a")]["steps"]["PolicyARN"]
    assert stepped.alarms["steps"]["AlarmActions"] == [live]


def test_ten_steps_and_twenty_schedules_are_remembered():
    account = Account(a="ml.g5.xlarge")
    bounds = [1.5, 1.75, 2, 2.25, 2.5, 3, 3.5, 4, 5, 7.5]
    adjustments = [
        {
            "MetricIntervalLowerBound": 617.0 * bound,
            "MetricIntervalUpperBound": 617.0 * (bound + 0.25),
            "ScalingAdjustment": number + 1,
        }
        for number, bound in enumerate(bounds)
    ]
    configuration = STEPS["StepScalingPolicyConfiguration"] | {"StepAdjustments": adjustments}  # type: ignore[operator]
    account.make_policy("a", STEPS | {"StepScalingPolicyConfiguration": configuration})
    account.schedules[resource_id("a")] = TWENTY_SCHEDULES
    answer = ask(account, "Create", step="Undo")
    assert answer["Status"] == "SUCCESS"
    assert len(answer["PhysicalResourceId"]) <= 1024


def test_a_deployment_that_is_taken_back_puts_the_schedules_back():
    account = Account(a="ml.g5.xlarge")
    account.schedules[resource_id("a")] = copy.deepcopy(PUT)
    undo = ask(account, "Create", step="Undo")["PhysicalResourceId"]
    ask(account, "Update", variant("b", "ml.g5.xlarge"))
    assert account.schedules == {}
    account.stack_status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    answer = ask(account, "Delete", step="Undo", PhysicalResourceId=undo)
    assert answer["Reason"] == "registered a as it was"
    assert account.schedules == {resource_id("a"): PUT}


def test_twenty_schedules_are_remembered():
    account = Account(a="ml.g5.xlarge")
    account.schedules[resource_id("a")] = TWENTY_SCHEDULES
    answer = ask(account, "Create", step="Undo")
    assert answer["Status"] == "SUCCESS"
    assert len(answer["PhysicalResourceId"]) <= 1024


def test_an_id_that_is_not_its_own_is_deleted_without_work():
    account = Account(a="ml.g5.xlarge")
    account.stack_status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    answer = ask(account, "Delete", step="Undo", PhysicalResourceId="generated-by-cloudformation")
    assert answer["Status"] == "SUCCESS"


def test_an_error_is_an_answer():
    account = Account(a="ml.g5.xlarge")
    account.describe_endpoint_config = None  # type: ignore[assignment,method-assign]
    answer = ask(account, "Update", variant("a", "ml.g5.2xlarge"))
    assert answer["Status"] == "FAILED"
    assert "not callable" in answer["Reason"]


def test_the_id_is_the_same_for_life():
    account = Account()
    created = ask(account, "Create", step="After")["PhysicalResourceId"]
    assert created == "tiny-local-EndpointUpdateAfter-"
    assert ask(account, "Update", step="After", PhysicalResourceId="x")["PhysicalResourceId"] == "x"
