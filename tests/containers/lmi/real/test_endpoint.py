"""An LMI endpoint of the embedded AWS, from the package in S3 to an update."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from embedded_aws.clients import LoopbackClients
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.endpoints import REGION, REGISTRY
from tests.containers.lmi.real.servers import Home
from tests.support.accounts import embedded_aws
from tests.support.roles import make_role
from tests.support.waiting import eventually

pytestmark = pytest.mark.djl_serving


@pytest.fixture
def clients(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackClients]:
    programs = {"djl-inference": home.program}
    directory = tmp_path_factory.mktemp("aws")
    with embedded_aws(directory, programs=programs) as aws:
        clients = LoopbackClients(aws.connection)
        servers.put_weights(clients.client("s3", REGION))
        yield clients
        clients.close()


def create_config(clients: LoopbackClients, name: str, home: Home, **serving: Any) -> None:
    """Puts a package into S3, and creates its model and an endpoint configuration."""
    s3, sagemaker = clients.client("s3", REGION), clients.client("sagemaker", REGION)
    files = servers.package_for(servers.config_for(home, "deepspeed", **serving))
    for path, content in files.items():
        s3.put_object(Bucket=servers.BUCKET, Key=f"{name}/files/{path}", Body=content)
    source = {
        "S3Uri": f"s3://{servers.BUCKET}/{name}/files/",
        "S3DataType": "S3Prefix",
        "CompressionType": "None",
    }
    sagemaker.create_model(
        ModelName=name,
        ExecutionRoleArn="arn:aws:iam::123456789012:role/lmi",
        PrimaryContainer={
            "Image": f"{REGISTRY}/djl-inference:{home.version}",
            "Environment": {"PYTHONPATH": servers.stand_in_path("deepspeed")},
            "ModelDataSource": {"S3DataSource": source},
        },
    )
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": name,
        "InstanceType": "ml.g5.2xlarge",
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])


def test_an_endpoint_answers_and_is_updated_over_a_stand_in(
    clients: LoopbackClients, home: Home
) -> None:
    iam, sagemaker = clients.client("iam", REGION), clients.client("sagemaker", REGION)
    # Every server of this process has the same roles.
    with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
        make_role(iam, "lmi")
    create_config(clients, "first", home, options={"max_new_tokens": 2})
    create_config(clients, "second", home, options={"max_new_tokens": 3})

    def settled() -> Any:
        described = sagemaker.describe_endpoint(EndpointName="lmi")
        return described if not described["EndpointStatus"].endswith("ing") else None

    def answer() -> Any:
        runtime = clients.client("sagemaker-runtime", REGION)
        body = json.dumps({"inputs": "abc"}).encode()
        return json.load(runtime.invoke_endpoint(EndpointName="lmi", Body=body)["Body"])

    sagemaker.create_endpoint(EndpointName="lmi", EndpointConfigName="first")
    described = eventually(settled, 120)
    assert described["EndpointStatus"] == "InService", described
    assert answer() == [{"generated_text": "de"}]

    sagemaker.update_endpoint(EndpointName="lmi", EndpointConfigName="second")
    while not settled():
        # The old server answers until the new one is there, which runs beside it.
        assert answer() in ([{"generated_text": "de"}], [{"generated_text": "def"}])
    assert settled()["EndpointConfigName"] == "second"
    assert answer() == [{"generated_text": "def"}]
