"""`slipway import --endpoint`: queues and components that scale to zero are modes of the config."""

import pytest

from tests.importing.conftest import NETWORK
from tests.support.described_endpoints import MOMENT, answers, component_answers, variant

KEY = "arn:aws:kms:eu-west-1:210987654321:key/0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d"


def test_an_asynchronous_endpoint_has_the_mode(import_endpoint, written, text):
    given = answers()
    given["DescribeEndpointConfig"]["AsyncInferenceConfig"] = {
        "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 4},
        "OutputConfig": {
            "S3OutputPath": "s3://answers/chat",
            "S3FailurePath": "s3://answers/failed/",
            "KmsKeyId": KEY,
            "NotificationConfig": {
                "SuccessTopic": "arn:aws:sns:eu-west-1:210987654321:answers",
                "IncludeInferenceResponseIn": ["SUCCESS_NOTIFICATION_TOPIC"],
            },
        },
    }
    _, *printed = import_endpoint(given, *NETWORK)
    section = written()["endpoint"]
    assert section["mode"] == "async"
    assert section["async_inference"] == {
        "input": "s3://answers/requests/",
        "output": "s3://answers/chat/",
        "failure_output": "s3://answers/failed/",
        "output_key_arn": KEY,
        "success_topic_arn": "arn:aws:sns:eu-west-1:210987654321:answers",
        "include_response_in": ["success"],
        "max_concurrent_invocations_per_instance": 4,
    }
    assert "IncludeInferenceResponseIn" not in "".join(printed)
    assert "# Guess: no answer tells where the requests lie. Name their prefix." in text()
    given["DescribeEndpointConfig"]["AsyncInferenceConfig"]["OutputConfig"]["KmsKeyId"] = "alias/a"
    _, *printed = import_endpoint(given, *NETWORK, "--overwrite")
    assert (
        "Left out: AsyncInferenceConfig.OutputConfig.KmsKeyId=alias/a: the config takes the ARN of "
        "a key, and no alias or id.\n"
    ) in "".join(printed)
    assert "output_key_arn" not in written()["endpoint"]["async_inference"]


def test_a_component_that_may_have_no_copies_is_a_mode(report, text, written):
    output = report(component_answers())
    section = written()["endpoint"]
    assert section["mode"] == "scale_to_zero"
    assert section["scale_to_zero"] == {
        "max_copies": 3,
        "target_concurrent_requests_per_copy": 5,
        "scale_in_cooldown_seconds": 600,
        "accelerators_per_copy": 1,
        "copy_memory_mib": 2048,
    }
    assert section["instance_count"] == 1
    assert section["model_data_download_timeout_seconds"] == 1200
    # The configuration has the network of a component.
    assert section["network_isolation"] is True
    assert "autoscaling" not in written()
    assert written()["alarms"]["model_latency_p99_milliseconds"] == 500
    assert [line for line in output.splitlines() if "omponent" in line or "Managed" in line] == [
        "Changed: inference component=chat-copies: it has the name of the endpoint now.",
        "Changed: ManagedInstanceScaling.MaxInstanceCount=5: Slipway computes it from `max_copies` "
        "and the copies that fit on an instance.",
    ]
    assert "wake" not in output


def test_a_component_that_nothing_wakes_gets_a_policy_that_does(report):
    given = component_answers()
    given["DescribeScalingPolicies"]["ScalingPolicies"].pop()
    output = report(given)
    assert (
        "Changed: policy that wakes the endpoint=none: Slipway makes an alarm and a policy that "
        "add the first copy.\n"
    ) in output
    # The alarm of no policy is an alarm of the user's.
    assert "Left out: alarm asleep=NoCapacityInvocationFailures (Sum)" in output


def test_schedules_and_batches_of_copies_are_kept(report, text, written):
    given = component_answers()
    action = {
        "ScheduledActionARN": "arn:aws:autoscaling:eu-west-1:1:scheduledAction:x",
        "ServiceNamespace": "sagemaker",
        "ResourceId": "inference-component/chat-copies",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
        "CreationTime": MOMENT,
    }
    given["DescribeScheduledActions"]["ScheduledActions"] = [
        {
            **action,
            "ScheduledActionName": "Morning",
            "Schedule": "cron(0 7 * * ? *)",
            "Timezone": "Europe/Zurich",
            "ScalableTargetAction": {"MinCapacity": 1},
        },
        {
            **action,
            "ScheduledActionName": "evening",
            "Schedule": "rate(1 day)",
            "ScalableTargetAction": {"MinCapacity": 0, "MaxCapacity": 3},
        },
    ]
    # It is day, so that the target has the bounds of the morning.
    [target] = given["DescribeScalableTargets"]["ScalableTargets"]
    target["MinCapacity"] = 1
    given["DescribeInferenceComponent"]["RuntimeConfig"] = {
        "DesiredCopyCount": 3,
        "CurrentCopyCount": 3,
    }
    given["DescribeInferenceComponent"]["LastDeploymentConfig"] = {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1},
            "RollbackMaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 50},
            "WaitIntervalInSeconds": 900,
        },
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "slow"}]},
    }
    output = report(given)
    assert written()["endpoint"]["scale_to_zero"]["schedules"] == [
        {
            "name": "morning",
            "at": "cron(0 7 * * ? *)",
            "time_zone": "Europe/Zurich",
            "min_copies": 1,
            "max_copies": 3,
        },
        {"name": "evening", "at": "rate(1 day)", "min_copies": 0, "max_copies": 3},
    ]
    assert "Changed: scheduled action=Morning: morning now.\n" in output
    assert (
        "Changed: scheduled action Morning: MaxCapacity=unset: 3 now, as it is at present.\n"
    ) in output
    assert "# Guess: a scheduled action may have set it last." in text()
    assert written()["rollout"] == {
        "strategy": "rolling",
        "step_count": 1,
        "rollback_step_percent": 50,
        "wait_seconds": 900,
        "rollback_alarms": ["model_latency_p99"],
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda given: given["DescribeScalableTargets"].update(ScalableTargets=[]),
        lambda given: given["DescribeScalingPolicies"]["ScalingPolicies"].pop(0),
        lambda given: variant(given)["ManagedInstanceScaling"].update(Status="DISABLED"),
        lambda given: given["DescribeInferenceComponent"]["Specification"].pop("ModelName"),
    ],
)
def test_any_other_component_is_refused(import_endpoint, change):
    given = component_answers()
    change(given)
    code, output, errors = import_endpoint(given, *NETWORK)
    assert (code, output) == (1, "")
    assert "the endpoint chat-old hosts inference components: chat-copies [SW660]" in errors
