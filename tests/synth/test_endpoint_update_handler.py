"""The function around an endpoint's update, on its own: an account in memory, call by call."""

import copy
from typing import Any

import pytest

from slipway.stacks.functions.endpoint_update.memory import pack, unpack
from tests.synth.endpoint_updates import (
    POLICY,
    TAGS,
    Account,
    KilledError,
    ask,
    resource_id,
)

ONE, OTHER = "ml.g5.xlarge", "ml.g5.2xlarge"
STEPS = {
    "PolicyName": "steps",
    "PolicyType": "StepScaling",
    "StepScalingPolicyConfiguration": {
        "AdjustmentType": "ChangeInCapacity",
        "Cooldown": 60,
        "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 2}],
    },
}
TOPIC = "arn:aws:sns:eu-west-1:210987654321:topic"
SUSPENDED = {"DynamicScalingInSuspended": True}
SCHEDULES = [
    {
        "ScheduledActionName": "workday",
        "Schedule": "cron(0 7 ? * MON-FRI *)",
        "Timezone": "Europe/Zurich",
        "ScalableTargetAction": {"MinCapacity": 4, "MaxCapacity": 12},
    },
    {
        "ScheduledActionName": "hourly",
        "Schedule": "rate(1 hour)",
        "ScalableTargetAction": {"MinCapacity": 2, "MaxCapacity": 6},
    },
]
# The next configuration's variants, and the variants that the template scales.
CHANGES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "another type": ({"a": OTHER}, ("a", "other")),
    "a pool": ({"a": f"{ONE} {OTHER}"}, ("a", "other")),
    "renamed": ({"b": ONE}, ("b", "other")),
    "dropped": ({"a": ONE}, ("other",)),
    "dropped with another type": ({"a": OTHER}, ("other",)),
}
ROLLED_BACK = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_variant_is_deregistered_before_the_update(change: str):
    account = Account(a=ONE, other=ONE)
    variants, scaled = CHANGES[change]
    account.begin(**variants, other=ONE)
    answer = ask(account, "Update", scaled=scaled)
    assert (answer["Status"], answer["Reason"]) == ("SUCCESS", "deregistered a")
    # Once more, as when the answer is lost: nothing is left to do.
    assert ask(account, "Update", scaled=scaled)["Reason"] == "Nothing to do."
    assert account.calls == ["deregister a"]


def test_after_the_update_a_target_is_registered_as_it_was():
    account = Account(a=ONE)
    # What a schedule set, what somebody suspended, and what somebody added.
    account.targets[resource_id("a")] = {
        "MinCapacity": 4,
        "MaxCapacity": 12,
        "SuspendedState": SUSPENDED,
    }
    account.schedules[resource_id("a")] = copy.deepcopy(SCHEDULES)
    account.put_policy(resource_id("a"), STEPS)
    account.begin(a=OTHER)
    ask(account, "Update")
    assert (account.targets, account.policies, account.schedules) == ({}, {}, {})
    account.served = "next"
    answer = ask(account, "Update", "After")
    assert answer["Reason"] == "registered a as it was"
    assert account.targets == {
        resource_id("a"): {
            "MinCapacity": 4,
            "MaxCapacity": 12,
            "SuspendedState": SUSPENDED,
            "Tags": TAGS,
        }
    }
    # CloudFormation makes the stack's own policy, under another name.
    assert account.definitions() == {resource_id("a"): {"steps": STEPS}}
    assert account.schedules == {resource_id("a"): SCHEDULES}
    assert ask(account, "Update", "After")["Reason"] == "Nothing to do."


@pytest.mark.parametrize("is_first", [True, False])
def test_the_memory_of_this_deployment_counts_and_no_earlier_one(is_first: bool):
    """A stack of the first release has no Undo. Any other has one of the deployment before."""
    account = Account(a=ONE)
    account.made = [item for item in account.made if "Undo" not in item["LogicalResourceId"]]
    account.begin(a=OTHER)
    if is_first:
        ask(account, "Create")
    else:
        # Somebody deregisters the target. The next configuration changes no types.
        account.targets.clear()
    account.served = "next"
    reason = "registered a as it was" if is_first else "Nothing to do."
    assert ask(account, "Create" if is_first else "Update", "After")["Reason"] == reason


def test_an_endpoint_that_was_updated_by_hand_goes_to_the_templates_configuration():
    """What is compared is what serves, and not what CloudFormation believes."""
    account = Account(a=ONE)
    account.configs["by-hand"], account.served = {"a": "ml.g5.4xlarge"}, "by-hand"
    account.begin(a=ONE)
    assert ask(account, "Update")["Reason"] == "deregistered a"
    account.served = "next"
    assert ask(account, "Update", "After")["Reason"] == "registered a as it was"


def test_only_a_scaled_variant_is_registered():
    account = Account(a=ONE, b=ONE)
    account.begin(a=OTHER, b=OTHER)
    assert ask(account, "Update", scaled=("a",))["Reason"] == "deregistered a; deregistered b"
    account.served = "next"
    answer = ask(account, "Update", "After", scaled=("a",))
    assert answer["Reason"] == "registered a as it was"


@pytest.mark.parametrize("was_made", [False, True])
def test_what_the_stack_has_not_made_is_left_to_cloudformation_and_to_others(was_made: bool):
    account = Account(a=ONE)
    for resource in account.made:
        resource["ResourceStatus"] = "CREATE_FAILED"
    if not was_made:
        account.made.clear()
    account.begin(a=OTHER, new=ONE)
    assert ask(account, "Update", scaled=("a", "new"))["Reason"] == "Nothing to do."
    assert account.calls == []


def test_unchanged_variants_cause_no_work():
    account = Account(a=ONE, pool=f"{ONE} {OTHER}")
    account.configs["next"] = account.configs["now"]
    for kind, step in (("Create", "Before"), ("Update", "Before")):
        assert ask(account, kind, step, scaled=("a", "pool"))["Reason"] == "Nothing to do."
    account.served = "next"
    assert ask(account, "Update", "After", scaled=("a", "pool"))["Reason"] == "Nothing to do."
    assert account.calls == []
    assert account.waits == []


def test_a_new_stack_has_no_endpoint_yet():
    account = Account()
    account.make("a")
    account.configs["next"] = {"a": ONE}
    assert ask(account, "Create")["Status"] == "SUCCESS"
    assert account.calls == []


def test_a_busy_endpoint_is_waited_for_and_not_for_ever():
    """Also where nothing is deregistered: a scaling activity may run."""
    account = Account(a=ONE)
    account.configs["next"] = {"a": ONE}
    account.statuses = ["Updating", "Updating", "InService"]
    assert ask(account, "Update")["Status"] == "SUCCESS"
    assert account.waits == [10.0, 10.0]
    account.statuses = ["Updating"]
    answer = ask(account, "Update")
    assert (answer["Status"], answer["Reason"]) == (
        "FAILED",
        "The endpoint tiny-local is still Updating. Wait until it is InService, then deploy again "
        "(or continue the rollback of the stack).",
    )


def test_a_concurrent_update_is_tried_again():
    account = Account(a=ONE)
    account.begin(a=OTHER)
    account.concurrent_updates = 2
    assert ask(account, "Update")["Status"] == "SUCCESS"
    assert account.calls == ["deregister a"]
    account = Account(a=ONE)
    account.begin(a=OTHER)
    account.concurrent_updates = 9
    answer = ask(account, "Update")
    assert answer["Status"] == "FAILED"
    assert "Try again." in answer["Reason"]


def test_a_role_that_is_not_known_yet_is_waited_for():
    account = Account(a=ONE)
    account.begin(a=OTHER)
    account.served = "next"
    account.denied = 6
    assert ask(account, "Update", "After")["Status"] == "SUCCESS"
    assert account.waits == [10.0] * 6
    account.denied = 7
    answer = ask(account, "Update", "After")
    assert answer["Status"] == "FAILED"
    assert "not authorized" in answer["Reason"]


def test_an_update_that_sagemaker_undid_in_silence_fails():
    account = Account(a=ONE)
    account.configs["next"] = {"a": ONE}
    answer = ask(account, "Update", "After")
    assert (answer["Status"], answer["Reason"]) == (
        "FAILED",
        "SageMaker undid the update without a failure: tiny-local still serves now, not next. Mend "
        "what the endpoint's log group and the alarms of its rollout show, then deploy again.",
    )
    # The rollback that follows must not fail.
    account.stack_status = "UPDATE_ROLLBACK_IN_PROGRESS"
    assert ask(account, "Update", "After")["Status"] == "SUCCESS"


def test_weights_are_set_on_the_running_fleet_and_taken_back():
    account = Account(a=ONE, b=ONE)
    # As SageMaker answers: in single precision.
    account.weights = {"a": 0.8999999761581421, "b": 0.10000000149011612}
    # CloudFormation makes texts of numbers.
    before, after = {"a": "0.9", "b": "0.1"}, {"a": "0.9", "b": "0.5", "another": "1"}
    assert ask(account, "Update", "After", "now", weights=before)["Reason"] == "Nothing to do."
    answer = ask(account, "Update", "After", "now", weights=after)
    assert (answer["Status"], answer["Reason"]) == ("SUCCESS", "gave b the weight 0.5")
    account.stack_status = "UPDATE_ROLLBACK_IN_PROGRESS"
    assert (
        ask(account, "Update", "After", "now", weights=before)["Reason"] == "gave b the weight 0.1"
    )
    assert (account.weights["b"], account.calls) == (0.1, ["weights"] * 2)


def test_another_mode_is_refused_before_anything_is_changed():
    account = Account(a=ONE)
    account.begin(a=OTHER)
    account.asynchronous.add("next")
    answer = ask(account, "Update")
    assert (answer["Status"], answer["Reason"]) == (
        "FAILED",
        "SageMaker changes no endpoint from real-time to asynchronous, or back. Run `cdk destroy` "
        "for tiny-local when nobody uses it, then deploy.",
    )
    assert account.calls == []


def updated() -> tuple[Account, str, dict[str, Any]]:
    """An account in which a deployment changed the types; its Undo, and the policies before it."""
    account = Account(a=ONE)
    before = account.definitions()
    undo = account.begin(a=OTHER)
    ask(account, "Update")
    account.served = "next"
    ask(account, "Update", "After")
    return account, undo, before


class TestRollback:
    def test_the_targets_are_put_back_as_they_were(self):
        account = Account(a=ONE, b=ONE)
        account.targets[resource_id("a")]["SuspendedState"] = SUSPENDED
        account.schedules[resource_id("a")] = copy.deepcopy(SCHEDULES)
        before = copy.deepcopy((account.targets, account.definitions(), account.schedules))
        undo = account.begin(b=OTHER)
        ask(account, "Update", scaled=("b",))
        assert account.targets == {}
        reason = account.finish(undo, ROLLED_BACK)
        assert reason == "registered a as it was; registered b as it was"
        for target in before[0].values():
            target["Tags"] = TAGS
        assert (account.targets, account.definitions(), account.schedules) == before

    def test_after_puts_them_back_where_it_is_called(self):
        """CloudFormation changes a target back before it deletes Undo."""
        account, undo, before = updated()
        account.stack_status = "UPDATE_ROLLBACK_IN_PROGRESS"
        assert ask(account, "Update", config="now")["Reason"] == "deregistered a"
        account.served = "now"
        assert ask(account, "Update", "After", "now")["Reason"] == "registered a as it was"
        assert account.definitions() == before
        assert account.finish(undo, ROLLED_BACK) == "Nothing to do."

    def test_a_rollback_that_failed_goes_on_where_it_was(self):
        """UPDATE_ROLLBACK_FAILED, then `cdk rollback`: each step is called again."""
        account, undo, before = updated()
        account.stack_status = "UPDATE_ROLLBACK_IN_PROGRESS"
        account.statuses = ["Updating"]
        assert ask(account, "Update", config="now")["Status"] == "FAILED"
        account.statuses = ["InService"]
        assert ask(account, "Update", config="now")["Reason"] == "deregistered a"
        account.served, account.statuses = "now", ["RollingBack"]
        assert ask(account, "Update", "After", "now")["Status"] == "FAILED"
        account.statuses = ["InService"]
        assert ask(account, "Update", "After", "now")["Reason"] == "registered a as it was"
        assert account.definitions() == before
        assert account.finish(undo, ROLLED_BACK) == "Nothing to do."

    @pytest.mark.parametrize(
        "status",
        ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"],
    )
    def test_a_deployment_that_is_not_taken_back_is_not_undone(self, status: str):
        account = Account(a=ONE)
        undo = account.begin(b=ONE)
        ask(account, "Update", scaled=("b",))
        assert account.finish(undo, status) == "Nothing to do."
        assert account.targets == {}

    def test_the_alarms_of_steps_name_the_policies_that_are_put_again(self):
        account = Account(a=ONE)
        account.make_alarm("steps", account.make_policy("a", STEPS))
        account.make_alarm("errors", TOPIC)
        first, policies = account.alarms["steps"], account.definitions()
        undo = account.begin(b=ONE)
        ask(account, "Update", scaled=("b",))
        assert account.policies == {}
        reason = account.finish(undo, ROLLED_BACK)
        assert reason == "registered a as it was; pointed the alarm steps at its policy"
        assert account.definitions() == policies
        live = account.policies[resource_id("a")]["steps"]["PolicyARN"]
        assert first["AlarmActions"] != [live]
        kept = {key: value for key, value in first.items() if key != "InsufficientDataActions"}
        assert account.alarms["steps"] == kept | {"AlarmActions": [live]}
        assert account.alarms["errors"]["AlarmActions"] == [TOPIC]

    def test_a_log_that_cannot_be_kept_fails_none(self):
        account = Account()
        account.stack_status = "ROLLBACK_IN_PROGRESS"
        # The account has no logs.
        answer = ask(account, "Delete")
        assert answer["Status"] == "SUCCESS"
        assert answer["Reason"].startswith("could not keep or delete a log: ")

    def test_an_id_that_is_not_its_own_is_deleted_without_work(self):
        account = Account(a=ONE)
        account.stack_status = ROLLED_BACK
        answer = ask(account, "Delete", "Undo", PhysicalResourceId="generated-by-cloudformation")
        assert answer["Status"] == "SUCCESS"


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
KEPT = {
    "a": {
        "MinCapacity": 2,
        "MaxCapacity": 6,
        "SuspendedState": None,
        "Policies": [POLICY],
        "Schedules": SCHEDULES[:1],
    }
}


class TestMemory:
    def test_ten_steps_and_twenty_schedules_fit(self):
        account = Account(a=ONE)
        bounds = [1.5, 1.75, 2, 2.25, 2.5, 3, 3.5, 4, 5, 7.5]
        configuration: dict[str, Any] = {
            "AdjustmentType": "ChangeInCapacity",
            "Cooldown": 60,
            "StepAdjustments": [
                {
                    "MetricIntervalLowerBound": 617.0 * bound,
                    "MetricIntervalUpperBound": 617.0 * (bound + 0.25),
                    "ScalingAdjustment": number + 1,
                }
                for number, bound in enumerate(bounds)
            ],
        }
        account.make_policy("a", STEPS | {"StepScalingPolicyConfiguration": configuration})
        account.schedules[resource_id("a")] = TWENTY_SCHEDULES
        answer = ask(account, "Create", "Undo")
        assert answer["Status"] == "SUCCESS"
        assert len(answer["PhysicalResourceId"]) <= 1024

    def test_more_is_refused_before_anything_is_changed(self):
        account = Account(a=ONE)
        account.schedules[resource_id("a")] = [
            each | {"ScheduledActionName": f"{each['ScheduledActionName']}-{number}"}
            for number in range(9)
            for each in TWENTY_SCHEDULES
        ]
        answer = ask(account, "Create", "Undo")
        assert answer["Status"] == "FAILED"
        assert "too long to be remembered" in answer["Reason"]

    @pytest.mark.parametrize(
        "stored",
        [
            # Without a format: as the first stacks remember.
            "ePkAzg6+q1ZKJKwOaD6JWWSEJAe0iMeeSAZrcjBBi2ZDI6BLa2sBA+e5wQ==",
            "ePkAzg6+q1YCxr+OUiJhxUBLSMwnIyRNoMU+9pQyWNOECVo0GxoBXVpbCwDNW7qc",
        ],
    )
    def test_texts_of_every_release_are_read(self, stored: str):
        assert unpack(stored) == KEPT

    def test_a_text_is_read_again(self):
        assert unpack(pack(KEPT)) == KEPT
        assert (pack({}), unpack("")) == ("", {})

    def test_a_text_of_a_later_format_is_refused(self):
        with pytest.raises(Exception, match=r"A later release .* Deploy it\."):
            unpack(pack({"": 2, **KEPT}))


@pytest.mark.parametrize("step", ["Before", "After", "Undo"])
def test_a_call_that_was_killed_is_finished_by_the_next(step: str):
    """Lambda calls the function again with the same request."""

    def life(calls: float) -> tuple[Any, bool]:
        account = Account(a=ONE, b=ONE)
        account.schedules[resource_id("a")] = copy.deepcopy(SCHEDULES)
        account.make_policy("a", STEPS)
        undo = account.begin(a=OTHER, b=OTHER)
        was_killed = False

        def do(name: str) -> None:
            nonlocal was_killed
            for lives in (calls if name == step else float("inf"), float("inf")):
                account.calls_to_live = lives
                try:
                    if name == "Undo":
                        account.finish(undo, ROLLED_BACK)
                    else:
                        assert ask(account, "Update", name, scaled=("a", "b"))["Status"] == (
                            "SUCCESS"
                        )
                    return
                except KilledError:
                    was_killed = True

        do("Before")
        if step == "After":
            account.served = "next"
            do("After")
        else:
            do("Undo")
        return (account.targets, account.definitions(), account.schedules), was_killed

    whole, _ = life(float("inf"))
    lives = [life(calls) for calls in range(40)]
    assert all(outcome == whole for outcome, _ in lives)
    assert (lives[0][1], lives[-1][1]) == (True, False)


def test_an_error_is_an_answer():
    account = Account(a=ONE)
    account.begin(a=OTHER)
    account.describe_endpoint_config = None  # type: ignore[assignment,method-assign]
    answer = ask(account, "Update")
    assert answer["Status"] == "FAILED"
    assert "not callable" in answer["Reason"]


def test_the_id_is_the_same_for_life():
    account = Account()
    created = ask(account, "Create", "After")["PhysicalResourceId"]
    assert created == "tiny-local-EndpointUpdateAfter-"
    again = ask(account, "Update", "After", PhysicalResourceId="x")
    assert again["PhysicalResourceId"] == "x"
