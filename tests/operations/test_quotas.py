"""The quota of instances beside the fleets of an update, for pools, variants and regions."""

import dataclasses
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.access import Access
from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.quotas import compare_quotas
from slipway.planning.plan import DeploymentPlan
from tests.support.plans import plan_for
from tests.support.projects import model_config

FIRST, SECOND = "ml.g4dn.xlarge", "ml.g4dn.2xlarge"


def planned(**endpoint: Any) -> DeploymentPlan:
    config = model_config(endpoint=endpoint)
    return plan_for(config)


def code_of(client: Any, instance_type: str) -> str:
    quotas = client.list_aws_default_service_quotas(ServiceCode="sagemaker")["Quotas"]
    (code,) = (
        quota["QuotaCode"]
        for quota in quotas
        if quota["QuotaName"] == f"{instance_type} for endpoint usage"
    )
    return str(code)


def allow(access: Access, instance_type: str, count: int) -> None:
    client = access.client("service-quotas")
    client.request_service_quota_increase(
        ServiceCode="sagemaker", QuotaCode=code_of(client, instance_type), DesiredValue=count
    )


def test_a_first_deployment_needs_one_fleet(access: Access) -> None:
    assert parted(compare_quotas(planned(), access)) == (
        [f"quota '{FIRST} for endpoint usage' of 1000 for 2"],
        [],
    )
    allow(access, FIRST, 1)
    found, (problem,) = parted(compare_quotas(planned(), access))
    assert found == []
    assert problem.message == (
        f"the quota '{FIRST} for endpoint usage' is 1 in us-east-1, and the deployment needs 2"
    )
    assert problem.remedy.endswith("--desired-value 2 --region us-east-1`, or choose another type.")


def test_variants_of_one_type_add_up(access: Access) -> None:
    allow(access, FIRST, 3)
    variants = [{"name": name, "weight": 1} for name in ("a", "b")]
    _, (problem,) = parted(compare_quotas(planned(variants=variants), access))
    assert problem.message.endswith("is 3 in us-east-1, and the deployment needs 4")


def test_a_shadow_variant_counts(access: Access) -> None:
    allow(access, FIRST, 2)
    shadow = {"sampling_percent": 50, "instance_count": 1}
    _, (problem,) = parted(compare_quotas(planned(shadow=shadow), access))
    assert problem.message.endswith("is 2 in us-east-1, and the deployment needs 3")
    elsewhere = planned(shadow={**shadow, "instances": [SECOND]})
    assert parted(compare_quotas(elsewhere, access)) == (
        [
            f"quota '{FIRST} for endpoint usage' of 2 for 2",
            f"quota '{SECOND} for endpoint usage' of 1000 for 1",
        ],
        [],
    )


def test_a_pool_needs_room_in_one_of_its_types(access: Access) -> None:
    pool = planned(instances=[FIRST, SECOND])
    allow(access, FIRST, 0)
    assert parted(compare_quotas(pool, access)) == (
        [f"quota '{SECOND} for endpoint usage' of 1000 for 2"],
        [],
    )
    allow(access, SECOND, 1)
    _, problems = parted(compare_quotas(pool, access))
    assert [problem.message.split("'")[1] for problem in problems] == [
        f"{FIRST} for endpoint usage",
        f"{SECOND} for endpoint usage",
    ]


def test_a_type_that_service_quotas_does_not_list_is_named(access: Access) -> None:
    plan = planned()
    (variant,) = plan.variants
    unlisted = dataclasses.replace(variant, instance_types=("ml.new.xlarge",))
    assert parted(compare_quotas(dataclasses.replace(plan, variants=(unlisted,)), access)) == (
        ["quota 'ml.new.xlarge for endpoint usage': Service Quotas does not list it"],
        [],
    )


def test_quotas_are_of_a_region_and_of_sagemaker(access: Access) -> None:
    client = access.client("service-quotas")
    allow(access, FIRST, 5)
    named = {"ServiceCode": "sagemaker", "QuotaCode": code_of(client, FIRST)}
    assert client.get_service_quota(**named)["Quota"]["Value"] == 5
    (applied,) = client.list_service_quotas(ServiceCode="sagemaker")["Quotas"]
    assert applied["QuotaName"] == f"{FIRST} for endpoint usage"
    with pytest.raises(ClientError, match="the quotas of sagemaker for instances behind endpoints"):
        client.list_service_quotas(ServiceCode="ec2")
    with pytest.raises(ClientError, match="the specified quota does not exist"):
        client.get_service_quota(ServiceCode="sagemaker", QuotaCode="L-00000000")
