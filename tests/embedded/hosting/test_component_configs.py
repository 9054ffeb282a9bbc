"""Refused endpoint configurations and requests of inference components."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.embedded_aws.reported_refusals import ReportedRefusal
from tests.embedded.hosting.conftest import refused, started
from tests.embedded.hosting.hosted_components import ON_GPU, SCALED, SMALL, Hosted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"ExecutionRoleArn": None},
            "ExecutionRoleArn is required for an endpoint configuration whose variants host "
            "inference components.",
        ),
        (
            {"ExecutionRoleArn": "arn:aws:iam::123456789012:role/nobody"},
            "Could not assume role arn:aws:iam::123456789012:role/nobody. Please ensure that the "
            "role exists and allows principal 'sagemaker.amazonaws.com' to assume the role.",
        ),
        (
            {"AsyncInferenceConfig": {"OutputConfig": {"S3OutputPath": "s3://artifacts/out"}}},
            "The embedded AWS does not emulate AsyncInferenceConfig (asynchronous endpoints with "
            "inference components). docs/embedded-aws/hosting.md lists what it does.",
        ),
        (
            {"ManagedInstanceScaling": {**SCALED, "MinInstanceCount": 5}},
            'MinInstanceCount 5 of variant "AllTraffic" is greater than MaxInstanceCount 4.',
        ),
        (
            {"InitialInstanceCount": 5},
            'InitialInstanceCount 5 of variant "AllTraffic" is greater than MaxInstanceCount 4.',
        ),
        (
            {"RoutingConfig": {"RoutingStrategy": "PREFIX_AWARE"}},
            'Variant "AllTraffic" needs PrefixLength and ConcurrencyThreshold.',
        ),
        (
            {
                "RoutingConfig": {
                    "RoutingStrategy": "RANDOM",
                    "PrefixAwareRoutingConfig": {"PrefixLength": 1024, "ConcurrencyThreshold": 1},
                }
            },
            'PrefixAwareRoutingConfig of variant "AllTraffic" needs RoutingStrategy PREFIX_AWARE.',
        ),
        (
            {"RoutingConfig": {"RoutingStrategy": "KV_AWARE"}},
            "The embedded AWS does not emulate routing KV_AWARE.",
        ),
        (
            {"ModelDataDownloadTimeoutInSeconds": 60},
            "The embedded AWS does not emulate ModelDataDownloadTimeoutInSeconds (a download "
            "time-out of a variant without a model). docs/embedded-aws/hosting.md lists what it "
            "does.",
        ),
    ],
)
def test_configurations_that_are_refused(hosted, change, message):
    """A change is of the variant, or of what the configuration has beside it."""
    beside = {"ExecutionRoleArn": hosted.account.role, "AsyncInferenceConfig": None}
    more = {name: change.get(name, value) for name, value in beside.items()}
    given = {name: value for name, value in more.items() if value is not None}
    variant = {name: value for name, value in change.items() if name not in beside}
    assert refused(hosted.account.config, hosted.variant(**variant), **given) == message


def test_variants_host_either_models_or_components(hosted):
    model = hosted.account.variant(hosted.account.model(), "WithModel")
    assert refused(hosted.config, hosted.variant("Empty"), model) == (
        'Variant "Empty" names no model and variant "WithModel" names one. An endpoint hosts '
        "either models or inference components."
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Specification": {"ModelName": "a"}}, "needs ComputeResourceRequirements"),
        ({"Specification": None}, "needs a Specification"),
        (
            {"Specification": {"ComputeResourceRequirements": SMALL}},
            "needs either a ModelName or a Container",
        ),
        (
            {"Specification": {"ModelName": "missing", "ComputeResourceRequirements": SMALL}},
            "Could not find model ",
        ),
        (
            {
                "Specification": {
                    "ModelName": "a",
                    "ComputeResourceRequirements": {**ON_GPU, "MaxMemoryRequiredInMb": 512},
                }
            },
            "MaxMemoryRequiredInMb 512 is less than MinMemoryRequiredInMb 1024",
        ),
        (
            {
                "Specification": {
                    "BaseInferenceComponentName": "base",
                    "Container": {"ArtifactUrl": "s3://artifacts/a.tar.gz"},
                }
            },
            "An adapter is loaded by its base component and has no RuntimeConfig.",
        ),
        ({"RuntimeConfig": None}, "needs a RuntimeConfig"),
        ({"VariantName": "Other"}, 'has no variant named "Other"'),
        ({"EndpointName": "nowhere"}, "Could not find endpoint "),
    ],
)
def test_requests_that_are_refused(hosted, empty, change, message):
    request: dict[str, Any] = {
        "InferenceComponentName": "refused",
        "EndpointName": empty,
        "Specification": hosted.specification(),
        "RuntimeConfig": {"CopyCount": 1},
        **change,
    }
    given = {name: value for name, value in request.items() if value is not None}
    with pytest.raises(ClientError, match=message):
        hosted.sagemaker.create_inference_component(**given)
    listed = hosted.sagemaker.list_inference_components(EndpointNameEquals=empty)
    assert listed["InferenceComponents"] == []


def test_a_change_is_refused_while_another_one_is_in_progress(hosted):
    endpoint = hosted.endpoint()
    specification = hosted.specification("slow")
    name = hosted.begin(endpoint, specification)
    arn = f"arn:aws:sagemaker:us-east-1:123456789012:inference-component/{name}"
    component = {"InferenceComponentName": name}
    creating = f'Cannot delete inference component "{arn}" while it is in state CREATE_IN_PROGRESS.'
    assert refused(hosted.sagemaker.delete_inference_component, **component) == creating
    hosted.settled(name)
    one_more = {**component, "DesiredRuntimeConfig": {"CopyCount": 2}}
    hosted.sagemaker.update_inference_component_runtime_config(**one_more)
    assert refused(hosted.sagemaker.update_inference_component_runtime_config, **one_more) == (
        f'Cannot update inference component "{arn}" while it is in state UPDATE_RC_IN_PROGRESS.'
    )
    # The first copy answers meanwhile.
    assert hosted.invoke(endpoint, name) == "x"
    hosted.settled(name)
    taken = {
        **component,
        "EndpointName": endpoint,
        "Specification": specification,
        "RuntimeConfig": {"CopyCount": 1},
    }
    assert refused(hosted.sagemaker.create_inference_component, **taken) == (
        f'Cannot create already existing inference component "{arn}".'
    )
    hosted.delete(name)
    assert refused(hosted.sagemaker.describe_inference_component, **component) == (
        f'Could not find inference component "{arn}".'
    )


def test_requests_name_a_component_exactly_where_one_is_hosted(hosted):
    endpoint = hosted.endpoint()
    name = hosted.component(endpoint)
    plain = hosted.account.endpoint()
    invoke = hosted.account.runtime.invoke_endpoint
    assert refused(invoke, EndpointName=endpoint, Body=b"x") == (
        "Inference Component Name header is required for endpoints to which you plan to deploy "
        "inference components. Please include Inference Component Name header or consider using "
        "SageMaker models."
    )
    named = {"InferenceComponentName": name, "Body": b"x"}
    assert refused(invoke, EndpointName=plain, **named) == (
        "Inference Component Name header is not allowed for endpoints to which you dont plan to "
        "deploy inference components. Please remove the Inference Component Name header and try "
        "again."
    )
    other = hosted.endpoint()
    assert f"of endpoint {other} of account" in refused(invoke, EndpointName=other, **named)
    unknown = refused(invoke, EndpointName="nowhere", **named)
    assert unknown == "Endpoint nowhere of account 123456789012 not found."
    wrong = refused(invoke, EndpointName=endpoint, TargetVariant="Other", **named)
    assert wrong == f"Inference Component {name} is not on variant Other."


@pytest.fixture(scope="module")
def empty(hosted: Hosted) -> str:
    return hosted.endpoint()


def test_models_have_no_components_and_components_no_count_of_instances(hosted, empty):
    endpoint = hosted.account.endpoint()
    with pytest.raises(ClientError, match="does not host inference components"):
        hosted.begin(endpoint, hosted.specification())
    with pytest.raises(ClientError, match="its instances follow the copies"):
        hosted.account.scale(empty, DesiredInstanceCount=2)


def test_a_batch_has_at_most_half_of_the_copies(hosted, empty):
    name = hosted.component(empty, copies=2)
    for size, message in (
        ({"Type": "COPY_COUNT", "Value": 2}, "it is 100 percent"),
        ({"Type": "CAPACITY_PERCENT", "Value": 51}, "it is 51 percent"),
    ):
        policy = {"MaximumBatchSize": size, "WaitIntervalInSeconds": 0}
        with pytest.raises(ClientError, match=message):
            hosted.update(
                name, hosted.specification(), DeploymentConfig={"RollingUpdatePolicy": policy}
            )
    with pytest.raises(ClientError, match="needs a Specification or a RuntimeConfig"):
        hosted.sagemaker.update_inference_component(InferenceComponentName=name)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with started(tmp_path_factory.mktemp("strict"), refused=list(ReportedRefusal)) as account:
        yield Hosted(account)


def test_numbers_of_zero_are_refused_on_request(strict):
    # `test_control.py` has the other number.
    endpoint = strict.endpoint(ManagedInstanceScaling={**SCALED, "MinInstanceCount": 1})
    message = refused(strict.component, endpoint, copies=0)
    assert message == "Inference components copy count an integer larger than 0"
    # Scaling to zero afterwards is allowed.
    name = strict.component(endpoint)
    assert strict.scale(name, 0)["RuntimeConfig"]["CurrentCopyCount"] == 0
