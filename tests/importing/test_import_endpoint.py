"""`slipway import --endpoint`: an endpoint that is there becomes a config."""

import json

import pytest

from tests.importing.conftest import NETWORK
from tests.support.described_endpoints import (
    COUNT,
    IMAGE,
    MOMENT,
    RESOURCE,
    alarm,
    answers,
    container,
    variant,
)

LEFT_OUT = (
    "Left out: ExecutionRoleArn=arn:aws:iam::210987654321:role/notebook: Slipway makes a role for "
    "each endpoint, with the rights that it needs. An existing role is named for one account, in "
    "`endpoint.execution_role_arn`.\n"
)


def test_an_endpoint_of_a_notebook_becomes_a_config(report, text, written):
    output = report(answers())
    assert written() == {
        "name": "chat",
        "model": {"family": "llama", "parameters": 6738415616},
        "serving": {
            "container": "custom", "image_uri": IMAGE, "environment": {"SM_NUM_GPUS": "1"},
        },
        "artifacts": {"weights": {"source": "s3", "uri": "s3://acme-models/llama-2-7b/"}},
        "endpoint": {
            "instances": ["ml.g5.2xlarge"],
            "instance_count": 2,
            "container_startup_health_check_timeout_seconds": 900,
            "routing": "random",
            "network_isolation": False,
            "log_retention_days": 60,
        },
        "autoscaling": {
            "min_instance_count": 1,
            "max_instance_count": 4,
            "target_invocations_per_instance_per_minute": 600,
            "scale_in_cooldown_seconds": 120,
            "scale_out_cooldown_seconds": 30,
        },
        "alarms": {
            "server_error_rate_percent": 1.0,
            "model_latency_p99_milliseconds": 500,
            "evaluation_periods_minutes": 3,
        },
        "tags": {"team": "search"},
    }  # fmt: skip
    assert output == (
        "model_configs/chat.yaml written, with 2 guesses to review.\n"
        + LEFT_OUT
        + "Left out: alarm action=arn:aws:sns:eu-west-1:210987654321:pager: Slipway's alarms send "
        "messages to the environment's notification topic.\n"
        "Changed: VariantName=primary: AllTraffic now.\n"
        "Next:\n  1. slipway publish chat --env production\n"
        "  2. cdk deploy chat -c env=production\n"
        "  3. chat-old goes on as it is, since an endpoint keeps its name. Send chat-ENVIRONMENT "
        "the same requests, and change the clients over. Then run `aws sagemaker delete-endpoint "
        "--endpoint-name chat-old`.\n"
    )
    for line in (
        "# Imported from the endpoint chat-old of account 210987654321 in eu-west-1.\n",
        "  # Guess: the endpoint sets none, and SageMaker then takes a random one.\n  routing: ra",
        "  # Guess: no alarm watches it. This is Slipway's default.\n  server_error_rate_percent:",
    ):
        assert line in text()


def test_several_variants_of_one_model_are_variants(report, text, written):
    given = answers()
    config, endpoint = given["DescribeEndpointConfig"], given["DescribeEndpoint"]
    config["ProductionVariants"].append(
        {
            **variant(given),
            "VariantName": "candidate",
            "InitialVariantWeight": 1.0,
            "InstanceType": "ml.g5.4xlarge",
            "InitialInstanceCount": 1,
            "ContainerStartupHealthCheckTimeoutInSeconds": 1200,
        }
    )
    endpoint["ProductionVariants"] = [
        {"VariantName": "primary", "DesiredWeight": 0.8999999761581421, "DesiredInstanceCount": 3},
        {"VariantName": "candidate", "DesiredWeight": 0.1, "DesiredInstanceCount": 2},
    ]
    output = report(given)
    section = written()["endpoint"]
    assert section["instances"] == ["ml.g5.2xlarge"]
    # The first variant scales, and its size at a moment is nobody's setting.
    assert section["instance_count"] == 2
    assert section["variants"] == [
        {"name": "primary", "weight": 0.9},
        {"name": "candidate", "weight": 0.1, "instances": ["ml.g5.4xlarge"]},
    ]
    assert "  variants:\n    - name: primary\n      weight: 0.9\n    - name: candidate\n" in text()
    for line in (
        "Changed: candidate: initial InstanceCount=1: 2 now, as it is live.\n",
        "Changed: candidate: initial Weight=1.0: 0.1 now, as it is live.\n",
        "Changed: candidate: container_startup_health_check_timeout_seconds=1200: 900 now. All "
        "variants share it.\n",
        "Changed: autoscaling of candidate=none: as primary now. All variants share it.\n",
    ):
        assert line in output


def test_a_shadow_of_the_same_model_is_the_shadow(report, written):
    given = answers()
    shadow = {**variant(given), "VariantName": "next", "InitialVariantWeight": 0.5}
    given["DescribeEndpointConfig"]["ShadowProductionVariants"] = [shadow]
    output = report(given)
    assert written()["endpoint"]["shadow"] == {
        "sampling_percent": 50, "instances": ["ml.g5.2xlarge"], "instance_count": 2,
    }  # fmt: skip
    assert "Changed: shadow variant=next: Shadow now.\n" in output
    shadow["ModelName"] = "next-model"
    output = report(given, "--overwrite")
    assert "shadow" not in written()["endpoint"]
    assert (
        "Left out: shadow variant next=next-model: it serves another model than the endpoint. "
        "Import it with `--call`, and write its `model`, `serving` and `artifacts` into `shadow`.\n"
    ) in output


def test_the_last_rollout_is_the_next_one(report, written):
    given = answers()
    given["DescribeEndpoint"]["LastDeploymentConfig"] = {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {
                "Type": "CANARY",
                "WaitIntervalInSeconds": 300,
                "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1},
            },
            "TerminationWaitInSeconds": 120,
        },
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "slow"}, {"AlarmName": "sales"}]},
    }
    given["DescribeScalableTargets"]["ScalableTargets"][0]["MinCapacity"] = 2
    output = report(given)
    assert written()["rollout"] == {
        "strategy": "canary",
        "step_count": 1,
        "wait_seconds": 300,
        "termination_wait_seconds": 120,
        "rollback_alarms": ["model_latency_p99"],
    }
    assert "Left out: rollback alarm=sales: no alarm of Slipway compares the same.\n" in output


def test_captured_data_and_keys(report, written):
    given = answers()
    key = "arn:aws:kms:eu-west-1:210987654321:key/0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d"
    given["DescribeEndpointConfig"] |= {
        "KmsKeyId": "alias/volumes",
        "DataCaptureConfig": {
            "EnableCapture": True,
            "InitialSamplingPercentage": 20,
            "DestinationS3Uri": "s3://captured/chat",
            "KmsKeyId": key,
            "CaptureOptions": [{"CaptureMode": "InputAndOutput"}],
            "CaptureContentTypeHeader": {"JsonContentTypes": ["application/jsonlines"]},
        },
    }
    output = report(given)
    assert written()["endpoint"]["data_capture"] == {
        "destination": "s3://captured/chat/",
        "key_arn": key,
        "sampling_percent": 20,
        "capture": ["input", "output"],
    }
    for line in (
        "Left out: KmsKeyId=alias/volumes: the config takes the ARN of a key, and no alias or "
        "id.\n",
        'Changed: DataCaptureConfig.JsonContentTypes=["application/jsonlines"]: application/json '
        "now, as everywhere.\n",
        "Changed: DataCaptureConfig.CsvContentTypes=[]: text/csv now, as everywhere.\n",
    ):
        assert line in output


@pytest.mark.parametrize(
    ("enhanced", "seconds", "section", "told"),
    [
        # What AWS publishes by default.
        (False, 60, None, ""),
        (
            True, 300, {"enhanced": True},
            "Changed: MetricsConfig.MetricPublishFrequencyInSeconds=300: 60 now, because alarms "
            "read the metrics every minute.\n",
        ),
    ],
)  # fmt: skip
def test_metrics_of_each_instance(report, written, enhanced, seconds, section, told):
    given = answers()
    given["DescribeEndpointConfig"]["MetricsConfig"] = {
        "EnableEnhancedMetrics": enhanced,
        "MetricPublishFrequencyInSeconds": seconds,
        "EnableDetailedObservability": True,
    }
    output = report(given)
    assert written()["endpoint"].get("metrics") == section
    assert told in output
    assert ("MetricsConfig" in output) == bool(told)


def test_a_queues_metrics_are_left_out(import_endpoint, written):
    given = answers()
    given["DescribeEndpointConfig"] |= {
        "AsyncInferenceConfig": {"OutputConfig": {"S3OutputPath": "s3://answers/chat/"}},
        "MetricsConfig": {
            "EnableDetailedObservability": True, "MetricPublishFrequencyInSeconds": 30,
        },
    }  # fmt: skip
    _, *printed = import_endpoint(given, *NETWORK)
    assert "metrics" not in written()["endpoint"]
    assert (
        "Left out: MetricsConfig.MetricPublishFrequencyInSeconds=30: AWS documents it for "
        "real-time endpoints only.\n"
    ) in "".join(printed)
    assert "EnableDetailedObservability" not in "".join(printed)


def test_scaling_and_alarms_that_a_config_cannot_say_are_listed(report, written):
    given = answers()
    policies = given["DescribeScalingPolicies"]["ScalingPolicies"]
    steps = {"AdjustmentType": "ChangeInCapacity", "Cooldown": 60}
    policies.insert(
        0,
        {
            **{name: policies[0][name] for name in (
                "PolicyARN", "ServiceNamespace", "ResourceId", "ScalableDimension", "CreationTime",
            )},
            "PolicyName": "burst",
            "PolicyType": "StepScaling",
            "StepScalingPolicyConfiguration": steps,
        },
    )  # fmt: skip
    given["DescribeScheduledActions"]["ScheduledActions"] = [
        {
            "ScheduledActionName": "Work Day",
            "ScheduledActionARN": "arn:aws:autoscaling:x",
            "ServiceNamespace": "sagemaker",
            "ResourceId": RESOURCE,
            "ScalableDimension": COUNT,
            "Schedule": "cron(0 7 ? * MON-FRI *)",
            "Timezone": "Europe/Zurich",
            "ScalableTargetAction": {"MinCapacity": 1, "MaxCapacity": 4},
            "CreationTime": MOMENT,
        }
    ]
    given["DescribeAlarms"]["MetricAlarms"] = [
        alarm("busy", Statistic="Average", Threshold=2000000.0),
        alarm("late", ExtendedStatistic="p99", Period=300, EvaluationPeriods=2,
              ComparisonOperator="GreaterThanOrEqualToThreshold", DatapointsToAlarm=1),
        alarm("theirs", ExtendedStatistic="p99",
              Dimensions=[{"Name": "EndpointName", "Value": "another"}]),
    ]  # fmt: skip
    output = report(given)
    content = written()
    assert content["autoscaling"]["schedules"] == [
        {
            "name": "work-day",
            "at": "cron(0 7 ? * MON-FRI *)",
            "time_zone": "Europe/Zurich",
            "min_instance_count": 1,
            "max_instance_count": 4,
        }
    ]
    assert content["alarms"]["evaluation_periods_minutes"] == 10
    for line in (
        'Left out: scaling policy burst={"StepScalingPolicyConfiguration.AdjustmentType": '
        '"ChangeInCapacity", "StepScalingPolicyConfiguration.Cooldown": "60"}: no field of the '
        "config says it.\n",
        "Left out: alarm busy=ModelLatency (Average) GreaterThanThreshold 2000000.0: no alarm of "
        "Slipway compares this.\n",
        "Changed: scheduled action=Work Day: work-day now.\n",
        "Changed: alarm late=GreaterThanOrEqualToThreshold, periods of 300 seconds, 1 data points "
        "of 2: as Slipway's now.\n",
    ):
        assert line in output
    assert "theirs" not in output


def test_an_archive_is_to_be_unpacked(report, text, written):
    given = answers()
    container(given).pop("ModelDataSource")
    container(given)["ModelDataUrl"] = "s3://acme-models/chat/model.tar.gz"
    given["HeadObject"] = {"ContentLength": 13_000_000_000}
    output = report(given)
    assert written()["artifacts"]["weights"] == {"source": "path", "path": "build/chat"}
    assert (
        "    # Guess: a folder for the files, which lie in s3://acme-models/chat/model.tar.gz.\n"
        in text()
    )
    assert (
        "Next:\n  1. mkdir -p build/chat && aws s3 cp s3://acme-models/chat/model.tar.gz - | tar "
        "xz -C build/chat\n  2. slipway publish chat --env production\n" in output
    )


def test_files_that_may_not_be_read_are_named(report, written):
    denied = {"ListObjectsV2": ("AccessDenied", "Access Denied")}
    output = report(answers(), refused=denied)
    assert written()["artifacts"]["weights"]["uri"] == "s3://acme-models/llama-2-7b/"
    assert (
        "Changed: weights=s3://acme-models/llama-2-7b/: not looked at, because its files cannot be "
        "read: An error occurred (AccessDenied)" in output
    )


def test_a_secret_is_neither_written_nor_shown(report, text):
    given = answers()
    token = "hf_" + "a" * 34
    container(given)["Environment"] = {"HF_TOKEN": token, "OTHER": token}
    output = report(given)
    assert token not in text() + output
    for name in ("HF_TOKEN", "OTHER"):
        assert f"Left out: {name}=(hidden): a secret belongs in no file." in output


def test_another_instance_type_takes_the_place_of_the_endpoints(report, written):
    output = report(answers(), "--instance", "ml.g5.4xlarge")
    assert written()["endpoint"]["instances"] == ["ml.g5.4xlarge"]
    assert 'Changed: instances=["ml.g5.2xlarge"]: as `--instance` says now.\n' in output


def test_a_name_that_leads_to_the_same_endpoint_is_told(import_endpoint):
    given = answers()
    given["DescribeEndpoint"]["EndpointName"] = "chat-production"
    _, output, _ = import_endpoint(given, *NETWORK)
    assert (
        ". `production` cannot deploy it while chat-production is there, because the new "
        "endpoint has that name. Import it under another NAME.\n" in output
    )


def test_json_has_the_steps_too(import_endpoint):
    code, output, _ = import_endpoint(answers(), *NETWORK, "--json")
    report = json.loads(output)
    assert code == 0
    assert report["next"][:2] == [
        "slipway publish chat --env production", "cdk deploy chat -c env=production",
    ]  # fmt: skip
    assert report["next"][2].startswith("chat-old goes on as it is")
    assert len(report["left_out"]) == 2
