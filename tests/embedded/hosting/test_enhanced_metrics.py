"""MetricsConfig: metrics of each instance and copy, as often as it says."""

from collections.abc import Iterator
from typing import Any

import pytest
from moto.cloudwatch.models import cloudwatch_backends

from slipway.embedded_aws.identity import ACCOUNT_ID
from tests.embedded.hosting.conftest import REGION, may, refused
from tests.embedded.hosting.hosted_components import Hosted
from tests.support.roles import MAY_USE_OBJECTS, make_role
from tests.support.waiting import eventually

REQUESTS, MACHINES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
ENHANCED = {
    "EnableEnhancedMetrics": True,
    "MetricPublishFrequencyInSeconds": 10,
    "EnableDetailedObservability": True,
}


def dimensions(account: Any, namespace: str, metric: str, endpoint: str) -> list[dict[str, str]]:
    found = account.cloudwatch.list_metrics(
        Namespace=namespace,
        MetricName=metric,
        Dimensions=[{"Name": "EndpointName", "Value": endpoint}],
    )["Metrics"]
    return sorted(
        ({each["Name"]: each["Value"] for each in one["Dimensions"]} for one in found), key=len
    )


def starts(namespace: str, metric: str, endpoint: str) -> set[float]:
    """The beginnings of the periods in which a metric of an endpoint has values."""
    return {
        datum.start_seconds
        for datum in list(cloudwatch_backends[ACCOUNT_ID][REGION].metric_data)
        if (datum.namespace, datum.name) == (namespace, metric)
        and any(each.value == endpoint for each in datum.dimensions)
    }


@pytest.fixture
def publishing(hurried: Any) -> Iterator[Any]:
    """The account with a role that may publish the metrics of machines."""
    statements = [*MAY_USE_OBJECTS["Statement"], may("cloudwatch:PutMetricData")]
    policy = {**MAY_USE_OBJECTS, "Statement": statements}
    hurried.role = make_role(hurried.client("iam"), "publishing", policy)
    yield hurried
    del hurried.role


def test_requests_and_machines_are_measured_for_each_instance(publishing):
    hurried = publishing
    variant = hurried.variant(hurried.model())
    endpoint = hurried.serve(variant, MetricsConfig=ENHANCED)
    assert hurried.settled(endpoint)["MetricsConfig"] == ENHANCED
    hurried.invoke(endpoint)
    of_variant = {"EndpointName": endpoint, "VariantName": "AllTraffic"}
    sets = eventually(lambda: dimensions(hurried, REQUESTS, "Invocations", endpoint))
    # The metrics that alarms and autoscaling read stay beside the new ones.
    assert sets[0] == of_variant
    assert [set(each) - set(of_variant) for each in sets[1:]] in (
        [{"EndpointConfigName"}, {"InstanceId"}],
        [{"InstanceId"}, {"EndpointConfigName"}],
    )
    (instance,) = (each["InstanceId"] for each in sets if "InstanceId" in each)
    assert {second % 10 for second in starts(REQUESTS, "Invocations", endpoint)} == {0}
    machines = eventually(lambda: dimensions(hurried, MACHINES, "MemoryUtilization", endpoint))
    assert machines == [of_variant, of_variant | {"InstanceId": instance}]
    assert {second % 10 for second in starts(MACHINES, "MemoryUtilization", endpoint)} == {0}


def test_without_enhanced_metrics_no_instance_is_named(account):
    endpoint = account.serve(
        account.variant(account.model()), MetricsConfig={"MetricPublishFrequencyInSeconds": 10}
    )
    account.invoke(endpoint)
    sets = eventually(lambda: dimensions(account, REQUESTS, "Invocations", endpoint))
    assert [set(each) for each in sets] == [
        {"EndpointName", "VariantName"}, {"EndpointName", "VariantName", "EndpointConfigName"},
    ]  # fmt: skip
    assert {second % 60 for second in starts(REQUESTS, "Invocations", endpoint)} == {0}


def test_requests_of_a_component_are_counted_for_each_copy(account):
    hosted = Hosted(account)
    endpoint = account.serve(
        hosted.variant(InitialInstanceCount=2),
        ExecutionRoleArn=account.role,
        MetricsConfig=ENHANCED,
    )
    balance = {"EnforcementMode": "PERMISSIVE"}
    spread = {"PlacementStrategy": "SPREAD", "AvailabilityZoneBalance": balance}
    name = hosted.begin(endpoint, {**hosted.specification(), "SchedulingConfig": spread}, 2)
    hosted.settled(name)

    # Each copy tells its process: here both have answered.
    answered = set[str]()
    while len(answered) < 2:
        answered.add(hosted.invoke(endpoint, name, "pid"))
    eventually(lambda: len(dimensions(account, REQUESTS, "Invocations", endpoint)) >= 2)
    found = dimensions(account, REQUESTS, "Invocations", endpoint)
    assert {each["InferenceComponentName"] for each in found} == {name}
    for dimension in ("InstanceId", "ContainerId"):
        assert len({each[dimension] for each in found}) == 2


def test_what_sagemaker_does_not_publish_is_refused(account):
    variant = account.variant(account.model())
    message = refused(
        account.config, variant, MetricsConfig={"MetricPublishFrequencyInSeconds": 45}
    )
    assert "45 is not one of 10, 30, 60, 120, 180, 240, 300." in message
    queue = {"OutputConfig": {"S3OutputPath": "s3://artifacts/answers/"}}
    enhanced = {"EnableEnhancedMetrics": True}
    message = refused(account.config, variant, AsyncInferenceConfig=queue, MetricsConfig=enhanced)
    assert "AWS documents them for real-time endpoints only" in message
