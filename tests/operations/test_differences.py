"""What an endpoint configuration serves, and each of its settings compared with the files."""

from typing import Any

import pytest

from slipway.config.sections.recording import Metrics
from slipway.deployed.served import served_by
from slipway.operations.status.differences import find_differences
from slipway.planning.plan import DeploymentPlan
from tests.support.described_endpoints import Answers, FakeAws, answers, container, variant
from tests.support.plans import plan_for, with_endpoint
from tests.support.projects import DIGEST, model_config

AMI = "al2023-ami-sagemaker-inference-gpu-4-1"
_POOL = ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"]
_RESERVATION = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/search"


def planned(**endpoint: Any) -> DeploymentPlan:
    return plan_for(model_config(endpoint=endpoint))


def deployed(plan: DeploymentPlan) -> Answers:
    """Returns the answers about an endpoint of a plan without settings of its own."""
    given = answers()
    variant(given).clear()
    variant(given).update(
        VariantName="AllTraffic",
        ModelName="chat-model",
        InstanceType="ml.g4dn.xlarge",
        InitialInstanceCount=2,
        InitialVariantWeight=1.0,
        ModelDataDownloadTimeoutInSeconds=600,
        ContainerStartupHealthCheckTimeoutInSeconds=600,
        RoutingConfig={"RoutingStrategy": plan.config.endpoint.routing.upper()},
        InferenceAmiVersion=AMI,
    )
    container(given)["Environment"] = dict(plan.container_environment)
    given["DescribeModel"] |= {
        "EnableNetworkIsolation": True,
        "ExecutionRoleArn": f"arn:aws:iam::123456789012:role/{plan.stack_name}-Role",
    }
    given["DescribeScalableTargets"]["ScalableTargets"] = []
    given["DescribeAlarms"]["MetricAlarms"] = []
    return given


def differing(plan: DeploymentPlan, given: Answers) -> dict[str, tuple[str | None, str | None]]:
    """Returns what is deployed and what the files say, without the alarms."""
    found = find_differences(plan, FakeAws(given), "chat-config", is_protected=False)  # type: ignore[arg-type]
    return {
        each.setting: (each.deployed, each.files)
        for each in found
        if not each.setting.startswith("alarms.")
    }


def test_an_endpoint_as_the_files_say_has_no_difference() -> None:
    plan = planned()
    given = deployed(plan)
    assert differing(plan, given) == {}
    # AWS describes the default of a new configuration.
    given["DescribeEndpointConfig"]["MetricsConfig"] = {"EnableDetailedObservability": True}
    assert differing(plan, given) == {}


@pytest.mark.parametrize(
    ("endpoint", "answer", "setting", "values"),
    [
        ({}, {"VolumeSizeInGB": 30}, "volume_size_gb", ("30", None)),
        ({}, {"InferenceAmiVersion": "al2-x"}, "inference_ami_version", ("al2-x", AMI)),
        ({}, {"InitialInstanceCount": 3}, "instance_count", ("3", "2")),
        ({}, {"RoutingConfig": {"RoutingStrategy": "RANDOM"}}, "routing",
         ("random", "least_outstanding_requests")),
        ({}, {"CapacityReservationConfig": {"MlReservationArn": _RESERVATION}},
         "capacity_reservation_arn", (_RESERVATION, None)),
        ({"instances": _POOL}, {}, "instances", (_POOL[0], ", ".join(_POOL))),
        ({"model_data_download_timeout_seconds": 900}, {}, "model_data_download_timeout_seconds",
         ("600", "900")),
    ],
)  # fmt: skip
def test_a_setting_of_a_variant(
    endpoint: dict[str, Any], answer: dict[str, Any], setting: str, values: tuple[str, str]
) -> None:
    given = deployed(planned())
    variant(given).update(answer)
    assert differing(planned(**endpoint), given)[f"endpoint.{setting}"] == values


def test_metrics_and_a_queue() -> None:
    plan, given = planned(), deployed(planned())
    metrics = {
        "EnableEnhancedMetrics": True,
        "MetricPublishFrequencyInSeconds": 10,
        "EnableDetailedObservability": False,
    }
    given["DescribeEndpointConfig"]["MetricsConfig"] = metrics
    section = "endpoint.metrics"
    assert differing(plan, given) == {
        f"{section}.enhanced": ("true", "false"),
        f"{section}.publish_frequency_seconds": ("10", "60"),
        f"{section}.detailed_observability": ("false", "true"),
    }
    same = Metrics(enhanced=True, publish_frequency_seconds=10, detailed_observability=False)
    assert differing(with_endpoint(plan, metrics=same), given) == {}
    del given["DescribeEndpointConfig"]["MetricsConfig"]
    given["DescribeEndpointConfig"]["AsyncInferenceConfig"] = {
        "OutputConfig": {"S3OutputPath": "s3://answers/a", "KmsKeyId": "key"},
        "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 4},
    }
    section = "endpoint.async_inference"
    assert differing(plan, given) == {
        "endpoint.mode": ("async", "realtime"),
        f"{section}.output": ("s3://answers/a", None),
        f"{section}.output_key_arn": ("key", None),
        f"{section}.max_concurrent_invocations_per_instance": ("4", None),
    }


def test_variables_the_network_and_the_role_of_the_model() -> None:
    plan, given = planned(), deployed(planned())
    container(given)["Environment"]["MINE"] = "1"
    given["DescribeModel"] |= {
        "EnableNetworkIsolation": False,
        "ExecutionRoleArn": "arn:aws:iam::123456789012:role/y",
    }
    assert differing(plan, given) == {
        "variable MINE": ("1", None),
        "endpoint.network_isolation": ("false", "true"),
        "endpoint.execution_role_arn": ("arn:aws:iam::123456789012:role/y", None),
    }


OURS = f"s3://bucket/artifacts/{DIGEST}/files/"


def source(uri: str) -> dict[str, Any]:
    place = {"S3Uri": uri, "S3DataType": "S3Prefix", "CompressionType": "None"}
    return {"ModelDataSource": {"S3DataSource": place}}


@pytest.mark.parametrize(
    ("told", "artifact"),
    [
        (source(OURS), DIGEST),
        (
            source(f"s3://bucket/models/mine/artifacts/{DIGEST}/files/"),
            f"{DIGEST} in models/mine/",
        ),
        (
            source(f"s3://bucket/other/artifacts/{DIGEST}/files/"),
            f"s3://bucket/other/artifacts/{DIGEST}/files/",
        ),
        (source("s3://other/model/"), "s3://other/model/"),
        ({"ModelDataUrl": "s3://other/model.tar.gz"}, "s3://other/model.tar.gz"),
        # Settings as variables: the weights are all there is.
        ({"Environment": {"HF_MODEL_ID": OURS}}, DIGEST),
        ({**source(OURS), "Environment": {"HF_MODEL_ID": "gpt2"}}, DIGEST),
        ({"Environment": {"OMP_NUM_THREADS": "1"}}, None),
        ({}, None),
    ],
)
def test_the_artifact_is_told_by_its_address(told: dict[str, Any], artifact: str | None):
    given = answers()
    given["DescribeModel"]["PrimaryContainer"] = {"Image": "image", **told}
    served, types, _ = served_by(FakeAws(given).client("sagemaker"), "config")
    assert (served.image, served.artifact) == ("image", artifact)
    assert types == {"primary": ("ml.g5.2xlarge",)}
