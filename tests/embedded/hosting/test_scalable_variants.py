"""Endpoints whose variants Application Auto Scaling has registered."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.embedded.hosting.conftest import Account

VALIDATION = "ValidationException"
REFUSED = (
    r'The variant\(s\) "\["AllTraffic"\]" must be deregistered as scalable targets with AWS Auto '
    r"Scaling before they can be removed or have their instance type updated\."
)


def target(name: str) -> dict[str, str]:
    return {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{name}/variant/AllTraffic",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }


def scaling(account: Account) -> Any:
    return account.client("application-autoscaling")


@pytest.fixture
def endpoint(account: Account) -> str:
    name = account.endpoint()
    scaling(account).register_scalable_target(**target(name), MinCapacity=1, MaxCapacity=4)
    scaling(account).put_scaling_policy(
        **target(name),
        PolicyName="invocations",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 70.0,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
            },
        },
    )
    return name


@pytest.mark.parametrize(
    "change",
    [
        {"InstanceType": "ml.g5.2xlarge"},
        {"name": "renamed"},
        {
            "InstanceType": None,
            "InstancePools": [
                {"InstanceType": "ml.g5.xlarge", "Priority": 1},
                {"InstanceType": "ml.g5.2xlarge", "Priority": 2},
            ],
        },
    ],
    ids=["another type", "another name", "a pool"],
)
def test_a_registered_variant_keeps_its_name_and_its_types(account, endpoint, change):
    declared = account.variant(account.model(), **change)
    config = account.config({key: value for key, value in declared.items() if value is not None})
    with pytest.raises(ClientError, match=REFUSED) as caught:
        account.sagemaker.update_endpoint(EndpointName=endpoint, EndpointConfigName=config)
    assert caught.value.response["Error"]["Code"] == VALIDATION
    assert account.settled(endpoint)["EndpointStatus"] == "InService"


def test_another_model_and_another_variant_beside_it_are_allowed(account, endpoint):
    config = account.config(
        account.variant(account.model(mark="new ")),
        account.variant(account.model(mark="new "), "candidate", InstanceType="ml.g5.2xlarge"),
    )
    account.update(endpoint, config)
    assert account.invoke(endpoint) == "new x"


def test_deregistering_takes_the_policies_along_and_allows_the_update(account, endpoint):
    scaling(account).deregister_scalable_target(**target(endpoint))
    policies = scaling(account).describe_scaling_policies(**target(endpoint))
    assert policies["ScalingPolicies"] == []
    with pytest.raises(ClientError, match="No scalable target found") as caught:
        scaling(account).deregister_scalable_target(**target(endpoint))
    assert caught.value.response["Error"]["Code"] == "ObjectNotFoundException"
    config = account.config(account.variant(account.model(), InstanceType="ml.g5.2xlarge"))
    assert account.update(endpoint, config)["EndpointConfigName"] == config


def test_deleting_an_endpoint_deregisters_its_variants(account, endpoint):
    resource = {"ServiceNamespace": "sagemaker", "ResourceIds": [target(endpoint)["ResourceId"]]}
    assert scaling(account).describe_scalable_targets(**resource)["ScalableTargets"] != []
    account.delete(endpoint)
    assert scaling(account).describe_scalable_targets(**resource)["ScalableTargets"] == []


def test_wrong_schedules_are_refused(account, endpoint):
    request = {
        **target(endpoint),
        "ScheduledActionName": "mine",
        "Schedule": "cron(0 7 ? * MON *)",
        "ScalableTargetAction": {"MinCapacity": 2},
    }
    no_zone = "there is no time zone 'Mars/Olympus'"
    no_times = "does not emulate StartTime and EndTime of scheduled actions"
    for over, message, code in (
        ({"Schedule": "cron(0 7 * * MON *)"}, r"needs `\?` as its day of the month", VALIDATION),
        ({"Timezone": "Mars/Olympus"}, no_zone, VALIDATION),
        ({"StartTime": 0}, no_times, VALIDATION),
        (target("none"), "No scalable target found", "ObjectNotFoundException"),
    ):
        with pytest.raises(ClientError, match=message) as caught:
            scaling(account).put_scheduled_action(**{**request, **over})
        assert caught.value.response["Error"]["Code"] == code
