"""Serverless endpoints: containers start with requests, and end when they are idle."""

from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from slipway.embedded_aws.clock import AccountClock
from tests.embedded.hosting.conftest import refused, started
from tests.support.waiting import eventually

SIZED = {"MemorySizeInMB": 2048, "MaxConcurrency": 1}


@pytest.fixture(scope="module")
def archived(account):
    account.put_archive("model.tar.gz", {"config.json": b"{}"})

    def variant(mode="ok", **sized):
        model = account.model(mode, ModelDataUrl="s3://artifacts/model.tar.gz")
        return {
            "VariantName": "AllTraffic",
            "ModelName": model,
            "ServerlessConfig": {**SIZED, **sized},
        }

    return variant


def has_log(account, name):
    prefix = f"/aws/sagemaker/Endpoints/{name}"
    return account.logs.describe_log_groups(logGroupNamePrefix=prefix)["logGroups"] != []


def test_a_request_starts_a_container_and_the_next_one_finds_it(account, archived):
    name = account.serve(archived())
    [described] = account.sagemaker.describe_endpoint(EndpointName=name)["ProductionVariants"]
    assert described["CurrentServerlessConfig"] == SIZED
    assert "CurrentInstanceCount" not in described
    assert not has_log(account, name)  # nothing ran so far
    assert account.invoke(name, "pid") == account.invoke(name, "pid")

    def setup():
        found = account.metric("ModelSetupTime", EndpointName=name, VariantName="AllTraffic")
        return found or None

    assert eventually(setup)["SampleCount"] == 1
    of_instances = account.metric(
        "InvocationsPerInstance", EndpointName=name, VariantName="AllTraffic"
    )
    assert of_instances == {}
    account.delete(name)


def test_a_request_beyond_the_concurrency_is_throttled(account, archived, tmp_path):
    name = account.serve(archived(ProvisionedConcurrency=1))
    assert has_log(account, name)  # the provisioned container is started already
    body = f"stream one until={tmp_path / 'go'} end".encode()
    answer = account.runtime.invoke_endpoint_with_response_stream(EndpointName=name, Body=body)
    events = iter(answer["Body"])
    next(events)
    with pytest.raises(ClientError) as caught:
        account.invoke(name)
    assert caught.value.response["Error"]["Code"] == "ThrottlingException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    (tmp_path / "go").touch()
    list(events)
    account.delete(name)


def test_bodies_have_4_mb_at_most(account, archived):
    name, limit = account.serve(archived()), 4_194_304
    assert len(account.invoke(name, "x" * limit)) == limit
    invoke = account.runtime.invoke_endpoint
    message = refused(invoke, EndpointName=name, Body=b"x" * (limit + 1))
    assert message.endswith("has oversize body.")
    with pytest.raises(ClientError, match=f"The response exceeds {limit} bytes"):
        invoke(EndpointName=name, Body=f"large {limit + 1}".encode())
    account.delete(name)


def test_idle_containers_end_and_provisioned_ones_stay(tmp_path):
    clock = AccountClock()
    with started(tmp_path, clock=clock, time_scale=0.02) as account:
        account.put_archive("model.tar.gz", {"config.json": b"{}"})
        model = account.model(ModelDataUrl="s3://artifacts/model.tar.gz")
        numbers = []
        for sized in (SIZED, {**SIZED, "ProvisionedConcurrency": 1}):
            variant = {"VariantName": "AllTraffic", "ModelName": model, "ServerlessConfig": sized}
            numbers.append(int(account.invoke(account.serve(variant), "pid")))
        for _ in range(6):
            clock.pass_minute()
        idle, warm = (Path(f"/proc/{number}") for number in numbers)
        eventually(lambda: not idle.exists(), 20)
        assert warm.exists()


def test_a_container_that_does_not_start_fails_the_request(account, archived):
    name = account.serve(archived("dead"))
    with pytest.raises(ClientError) as caught:
        account.invoke(name)
    assert caught.value.response["Error"]["Code"] == "ModelError"
    assert "did not pass the ping health check" in str(caught.value)
    account.delete(name)


def test_what_a_serverless_variant_excludes(account, archived):
    model = account.model()
    variant = {**archived(), "ModelName": model, "InstanceType": "ml.g5.xlarge"}
    capture = {
        "InitialSamplingPercentage": 1,
        "DestinationS3Uri": "s3://a/b",
        "CaptureOptions": [{"CaptureMode": "Input"}],
    }
    message = refused(account.config, variant, DataCaptureConfig=capture)
    assert message == (
        'Variant "AllTraffic" has a ServerlessConfig, which excludes InstanceType, '
        "DataCaptureConfig, ModelDataSource."
    )
    assert "MemorySizeInMB" in refused(account.config, archived(MemorySizeInMB=1500))
    assert "not be greater" in refused(account.config, archived(ProvisionedConcurrency=2))


def test_instances_cannot_become_serverless(account, archived):
    name = account.endpoint()
    message = refused(
        account.sagemaker.update_endpoint,
        EndpointName=name,
        EndpointConfigName=account.config(archived()),
    )
    assert message == f"Cannot update the instances of endpoint {name} to serverless."
    account.delete(name)
