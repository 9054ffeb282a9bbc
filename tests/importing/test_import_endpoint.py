"""`slipway import --endpoint`: an endpoint that is there becomes a config, or is refused.

`endpoints.txt` has all that is printed and written of the first endpoint. Of every other one it has
the lines that differ. `pytest tests/importing --update-golden` writes it anew.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slipway.deployed.reader import read_endpoint
from slipway.errors import UserError
from slipway.importing.endpoint.endpoints import hosted
from tests.importing.conftest import NETWORK
from tests.support.described_endpoints import (
    COUNT,
    MOMENT,
    NAME,
    REGION,
    RESOURCE,
    Answers,
    FakeAws,
    alarm,
    answers,
    arn,
    component_answers,
    container,
    variant,
)
from tests.support.golden_texts import changed_lines, compare_golden, read_golden

GOLDEN = Path(__file__).with_name("endpoints.txt")
TOKEN = "hf_" + "a" * 34
KEY = "arn:aws:kms:eu-west-1:210987654321:key/0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d"
DENIED = ("AccessDeniedException", "User x is not authorized")
NOT_THERE = ("ValidationException", 'Could not find endpoint "x".')


@dataclass(frozen=True)
class Case:
    """A change of the answers about an endpoint, and how it is imported."""

    change: Callable[[Answers], Any]
    options: tuple[str, ...] = NETWORK
    refused: Mapping[str, tuple[str, str]] | None = None


FIRST = "of a notebook"
CASES = {
    FIRST: Case(lambda _: None),
    "another instance type": Case(lambda _: None, (*NETWORK, "--instance", "ml.g5.4xlarge")),
    "files that may not be read": Case(
        lambda _: None, refused={"ListObjectsV2": ("AccessDenied", "Access Denied")}
    ),
    "a name that leads to the same endpoint": Case(
        lambda given: given["DescribeEndpoint"].update(EndpointName="chat-production")
    ),
    "without a terminal for missing facts": Case(
        lambda given: container(given).pop("ModelDataSource"), ()
    ),
    "an unknown endpoint": Case(
        lambda given: given.update(ListEndpoints=listed("chat-older", "ocr")),
        refused={"DescribeEndpoint": NOT_THERE},
    ),
    "an unknown endpoint without the right to list": Case(
        lambda _: None, refused={"DescribeEndpoint": NOT_THERE, "ListEndpoints": DENIED}
    ),
    "calls that are denied": Case(
        lambda _: None,
        refused=dict.fromkeys(
            ("DescribeModel", "DescribeScalableTargets", "DescribeAlarms", "ListTags",
             "DescribeLogGroups"),
            DENIED,
        ),
    ),
    "a configuration that was deleted": Case(
        lambda _: None,
        refused={
            "DescribeEndpointConfig":
                ("ValidationException", 'Could not find endpoint configuration "chat-config".'),
        },
    ),
    "a model that was deleted": Case(
        lambda _: None,
        refused={"DescribeModel": ("ValidationException", 'Could not find model "chat-model".')},
    ),
    "a call that fails for another reason": Case(
        lambda _: None, refused={"ListTags": ("ThrottlingException", "slow down")}
    ),
}  # fmt: skip


def listed(*names: str) -> dict[str, Any]:
    summary = {"CreationTime": MOMENT, "LastModifiedTime": MOMENT, "EndpointStatus": "InService"}
    return {
        "Endpoints": [
            {**summary, "EndpointName": name, "EndpointArn": arn("endpoint", name)}
            for name in names
        ]
    }


def case(change: Callable[[Answers], None]) -> Callable[[Answers], None]:
    """Adds the case of a change, under the change's name."""
    CASES[change.__name__.replace("_", " ").strip()] = Case(change)
    return change


@case
def several_variants_of_one_model(given: Answers) -> None:
    given["DescribeEndpointConfig"]["ProductionVariants"].append(
        {
            **variant(given),
            "VariantName": "candidate",
            "InitialVariantWeight": 1.0,
            "InstanceType": "ml.g5.4xlarge",
            "InitialInstanceCount": 1,
            "ContainerStartupHealthCheckTimeoutInSeconds": 1200,
        }
    )
    given["DescribeEndpoint"]["ProductionVariants"] = [
        {"VariantName": "primary", "DesiredWeight": 0.8999999761581421, "DesiredInstanceCount": 3},
        {"VariantName": "candidate", "DesiredWeight": 0.1, "DesiredInstanceCount": 2},
    ]


@case
def a_shadow_of_the_same_model(given: Answers) -> None:
    shadow = {**variant(given), "VariantName": "next", "InitialVariantWeight": 0.5}
    given["DescribeEndpointConfig"]["ShadowProductionVariants"] = [shadow]


@case
def a_shadow_of_another_model(given: Answers) -> None:
    a_shadow_of_the_same_model(given)
    given["DescribeEndpointConfig"]["ShadowProductionVariants"][0]["ModelName"] = "next-model"


@case
def the_last_rollout(given: Answers) -> None:
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


@case
def captured_data_and_keys(given: Answers) -> None:
    given["DescribeEndpointConfig"] |= {
        "KmsKeyId": "alias/volumes",
        "DataCaptureConfig": {
            "EnableCapture": True,
            "InitialSamplingPercentage": 20,
            "DestinationS3Uri": "s3://captured/chat",
            "KmsKeyId": KEY,
            "CaptureOptions": [{"CaptureMode": "InputAndOutput"}],
            "CaptureContentTypeHeader": {"JsonContentTypes": ["application/jsonlines"]},
        },
    }


def metrics(given: Answers, enhanced: bool, seconds: int) -> None:
    given["DescribeEndpointConfig"]["MetricsConfig"] = {
        "EnableEnhancedMetrics": enhanced,
        "MetricPublishFrequencyInSeconds": seconds,
        "EnableDetailedObservability": True,
    }


CASES["metrics that AWS publishes by default"] = Case(lambda given: metrics(given, False, 60))
CASES["metrics that come too rarely"] = Case(lambda given: metrics(given, True, 300))


@case
def metrics_of_a_queue(given: Answers) -> None:
    metrics(given, False, 30)
    given["DescribeEndpointConfig"]["AsyncInferenceConfig"] = {
        "OutputConfig": {"S3OutputPath": "s3://answers/chat/"}
    }


@case
def scaling_and_alarms_that_a_config_cannot_say(given: Answers) -> None:
    policies = given["DescribeScalingPolicies"]["ScalingPolicies"]
    target = ("PolicyARN", "ServiceNamespace", "ResourceId", "ScalableDimension", "CreationTime")
    burst = {name: policies[0][name] for name in target} | {
        "PolicyName": "burst",
        "PolicyType": "StepScaling",
        "StepScalingPolicyConfiguration": {"AdjustmentType": "ChangeInCapacity", "Cooldown": 60},
    }
    policies.insert(0, burst)
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


@case
def an_archive(given: Answers) -> None:
    container(given).pop("ModelDataSource")
    container(given)["ModelDataUrl"] = "s3://acme-models/chat/model.tar.gz"
    given["HeadObject"] = {"ContentLength": 13_000_000_000}


@case
def a_secret(given: Answers) -> None:
    container(given)["Environment"] = {"HF_TOKEN": TOKEN, "OTHER": TOKEN}


# Modes


def queue(given: Answers, key: str) -> None:
    given["DescribeEndpointConfig"]["AsyncInferenceConfig"] = {
        "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 4},
        "OutputConfig": {
            "S3OutputPath": "s3://answers/chat",
            "S3FailurePath": "s3://answers/failed/",
            "KmsKeyId": key,
            "NotificationConfig": {
                "SuccessTopic": "arn:aws:sns:eu-west-1:210987654321:answers",
                "IncludeInferenceResponseIn": ["SUCCESS_NOTIFICATION_TOPIC"],
            },
        },
    }


CASES["a queue"] = Case(lambda given: queue(given, KEY))
CASES["a queue with the alias of a key"] = Case(lambda given: queue(given, "alias/a"))


@case
def a_component_that_may_have_no_copies(given: Answers) -> None:
    given.update(component_answers())


@case
def a_component_that_nothing_wakes(given: Answers) -> None:
    given.update(component_answers())
    given["DescribeScalingPolicies"]["ScalingPolicies"].pop()


@case
def schedules_and_batches_of_copies(given: Answers) -> None:
    given.update(component_answers())
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
    given["DescribeScalableTargets"]["ScalableTargets"][0]["MinCapacity"] = 1
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


# Forms that no config has


@case
def a_component_without_a_target(given: Answers) -> None:
    given.update(component_answers())
    given["DescribeScalableTargets"]["ScalableTargets"] = []


@case
def a_component_without_a_target_of_requests(given: Answers) -> None:
    given.update(component_answers())
    given["DescribeScalingPolicies"]["ScalingPolicies"].pop(0)


@case
def a_component_whose_instances_do_not_scale(given: Answers) -> None:
    given.update(component_answers())
    variant(given)["ManagedInstanceScaling"]["Status"] = "DISABLED"


@case
def a_component_without_a_model(given: Answers) -> None:
    given.update(component_answers())
    del given["DescribeInferenceComponent"]["Specification"]["ModelName"]


@case
def several_components(given: Answers) -> None:
    given["DescribeEndpointConfig"]["ExecutionRoleArn"] = "arn:aws:iam::210987654321:role/hosts"
    variant(given).pop("ModelName")
    variant(given)["ManagedInstanceScaling"] = {"Status": "ENABLED", "MinInstanceCount": 0}
    [about] = component_answers()["ListInferenceComponents"]["InferenceComponents"]
    given["ListInferenceComponents"] = {
        "InferenceComponents": [
            {**about, "InferenceComponentName": name} for name in ("llama", "qwen")
        ]
    }


@case
def serverless(given: Answers) -> None:
    variant(given).pop("InstanceType")
    variant(given).pop("InitialInstanceCount")
    variant(given)["ServerlessConfig"] = {"MemorySizeInMB": 4096, "MaxConcurrency": 10}


@case
def a_pipeline(given: Answers) -> None:
    model = given["DescribeModel"]
    first = model.pop("PrimaryContainer")
    model["Containers"] = [first, {"Image": "1.dkr.ecr.eu-west-1.amazonaws.com/after:1"}]
    model["InferenceExecutionConfig"] = {"Mode": "Serial"}


@case
def many_models(given: Answers) -> None:
    container(given).pop("ModelDataSource")
    container(given).update(Mode="MultiModel", ModelDataUrl="s3://acme-models/all/")


@case
def a_package_of_the_marketplace(given: Answers) -> None:
    package = "arn:aws:sagemaker:eu-west-1:985815980388:model-package/ocr-1"
    given["DescribeModel"]["PrimaryContainer"] = {"ModelPackageName": package}


@case
def a_private_hub(given: Answers) -> None:
    hub = "arn:aws:sagemaker:eu-west-1:210987654321:hub-content/private/Model/llama/1.0.0"
    source = container(given)["ModelDataSource"]["S3DataSource"]
    source["HubAccessConfig"] = {"HubContentArn": hub}


@pytest.mark.parametrize("name", CASES)
def test_an_import_says_what_it_made_and_what_it_left_out(name, import_endpoint, config, request):
    chosen, given = CASES[name], answers()
    chosen.change(given)
    code, output, errors = import_endpoint(given, *chosen.options, refused=chosen.refused)
    assert code == bool(errors)
    said = f"{errors}{output}"
    if config.exists():
        said += f"--- {config.name}\n{config.read_text('utf-8')}"
        if name != FIRST:
            said = changed_lines(read_golden(GOLDEN)[FIRST], said)
    assert TOKEN not in said
    compare_golden(request, GOLDEN, CASES, name, said)


def test_variants_of_several_models_are_refused():
    given = answers()
    other = {**variant(given), "VariantName": "candidate", "ModelName": "other-model"}
    given["DescribeEndpointConfig"]["ProductionVariants"].append(other)
    aws = FakeAws(given)
    models = iter(["1", "2"])
    plain = aws._answer

    def answer(model, **more):
        response, found = plain(model, **more)
        if model.name == "DescribeModel":
            found["PrimaryContainer"]["Environment"] = {"RELEASE": next(models)}
        return response, found

    aws._answer = answer
    with pytest.raises(UserError) as caught:
        hosted(read_endpoint(aws.client, NAME, REGION))
    assert caught.value.problems[0].message == (
        "the variants of the endpoint chat-old serve several models: chat-model, other-model"
    )
    assert caught.value.problems[0].remedy == (
        "An import reads one model. Import each with `--call`, under a name of its own. Then write "
        "the second one's `model`, `serving` and `artifacts` into its variant."
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


def test_a_region_goes_with_an_endpoint(import_endpoint, slipway_command):
    import_endpoint(answers(), *NETWORK)
    code, _, errors = slipway_command(
        "import", "other", "--hub", "build/x", "--region", "eu-west-1"
    )
    assert code == 1
    assert "`--region` goes with `--endpoint` [SW409]\n    Leave `--region` out.\n" in errors
