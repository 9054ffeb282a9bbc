"""Our LMI image: the handler is not in the package but on the server's path, as in the image."""

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from embedded_aws.clients import LoopbackClients
from embedded_aws.hosting.families import (
    PROGRAMS,
)
from embedded_aws.hosting.families.program import ContainerProgram
from embedded_aws.server import EmbeddedAws
from slipway import java_properties
from slipway.config.schema import ModelConfig
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.endpoints import REGION
from tests.containers.lmi.real.servers import DjlServing, Home
from tests.support.accounts import SECRET_ACCESS_KEY
from tests.support.roles import make_role
from tests.support.waiting import eventually

# The last version that has an image of ours.
pytestmark = [pytest.mark.djl_serving, pytest.mark.djl_version(at_most="0.27.0")]

LIBRARIES = [
    "deepspeed",
    pytest.param("fastertransformer", marks=pytest.mark.djl_version(at_most="0.24.0")),
]
SETTINGS: dict[str, Any] = {
    "options": {"max_new_tokens": 8},
    **servers.BATCHES_OF_ONE,
}
BODIES: list[Any] = [
    {"inputs": "abc", "parameters": {"max_new_tokens": 3}},
    {"inputs": ["abc", "caf\u00e9 x"], "parameters": {"max_new_tokens": 2}},
    {"inputs": "abc", "parameters": {"max_new_tokens": 9}},
    b"{",
]


def our_config(home: Home, library: str, **settings: Any) -> ModelConfig:
    config = servers.config_of_our_image(home, library, **{**SETTINGS, **settings})
    assert config is not None
    return config


def path_in_the_image(library: str) -> str:
    """The variable as the image has it, with the libraries that stand in for the engine's."""
    inside = PROGRAMS["slipway/lmi"].environment["PYTHONPATH"]
    return os.pathsep.join((inside, servers.stand_in_path(library)))


@pytest.fixture(scope="module", params=LIBRARIES)
def both(
    request: pytest.FixtureRequest,
    home: Home,
    aws_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[DjlServing, DjlServing]]:
    """A server of our image, and one of AWS's with the handler in the package."""
    library = str(request.param)
    built = servers.package_for(our_config(home, library))
    managed = servers.package_for(servers.config_for(home, library, **SETTINGS))
    assert list(built) == ["serving.properties"]
    assert java_properties.parse(built["serving.properties"])["option.entryPoint"] == (
        f"slipway_{library}"
    )
    assert "model.py" in managed
    with contextlib.ExitStack() as stack:
        started = []
        for files, path in (
            (built, path_in_the_image(library)),
            (managed, servers.stand_in_path(library)),
        ):
            directory = tmp_path_factory.mktemp("djl")
            server = stack.enter_context(
                servers.started(home, directory, files, aws_url=aws_url, PYTHONPATH=path)
            )
            server.wait_until_ready()
            started.append(server)
        yield started[0], started[1]


def test_it_answers_as_awss_image_does_over_a_stand_in(both: tuple[DjlServing, DjlServing]) -> None:
    built, managed = both
    answers = [built.post(body) for body in BODIES]
    assert answers == [managed.post(body) for body in BODIES]
    assert [answer.status for answer in answers] == [200, 200, 400, 400]
    assert answers[0].document == [{"generated_text": "def"}]


@pytest.mark.parametrize("library", LIBRARIES)
def test_it_forms_batches_over_a_stand_in(
    home: Home, aws_url: str, tmp_path_factory: pytest.TempPathFactory, library: str
) -> None:
    files = servers.package_for(our_config(home, library, **servers.BATCHES_OF_FOUR))
    directory, path = tmp_path_factory.mktemp("djl"), path_in_the_image(library)
    bodies = [{"inputs": text, "parameters": {"max_new_tokens": 1}} for text in "adgj"]
    with servers.started(home, directory, files, aws_url=aws_url, PYTHONPATH=path) as built:
        built.wait_until_ready()
        answers = [answer.document for answer in built.post_together(*bodies)]
        (call,) = built.generated_for()
    assert answers == [[{"generated_text": text}] for text in "behk"]
    assert sorted(call) == list("adgj")


def test_without_the_path_of_the_image_the_model_does_not_load(
    home: Home, aws_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """So that the other tests show the image's path, and nothing else, to lead to the handler."""
    files = servers.package_for(our_config(home, "deepspeed"))
    directory = tmp_path_factory.mktemp("djl")
    path = servers.stand_in_path("deepspeed")
    with servers.started(home, directory, files, aws_url=aws_url, PYTHONPATH=path) as server:
        assert "No module named 'slipway_deepspeed'" in server.wait_for_end()


def test_an_endpoint_of_our_image_answers_over_a_stand_in(
    home: Home, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = our_config(home, "deepspeed")
    program = ContainerProgram(
        home.program.command,
        environment={**home.program.environment, "PYTHONPATH": path_in_the_image("deepspeed")},
    )
    directory = tmp_path_factory.mktemp("aws")
    with EmbeddedAws(
        port=0,
        secret_access_key=SECRET_ACCESS_KEY,
        directory=directory,
        programs={"slipway/lmi": program},
    ) as aws:
        clients = LoopbackClients(aws.connection)
        s3, sagemaker = clients.client("s3", REGION), clients.client("sagemaker", REGION)
        servers.put_weights(s3)
        for path, content in servers.package_for(config).items():
            s3.put_object(Bucket=servers.BUCKET, Key=f"built/files/{path}", Body=content)
        iam = clients.client("iam", REGION)
        with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
            make_role(iam, "lmi")
        source = {
            "S3Uri": f"s3://{servers.BUCKET}/built/files/",
            "S3DataType": "S3Prefix",
            "CompressionType": "None",
        }
        registry = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
        sagemaker.create_model(
            ModelName="built",
            ExecutionRoleArn="arn:aws:iam::123456789012:role/lmi",
            PrimaryContainer={
                "Image": f"{registry}/slipway/lmi:{home.version}-0123456789abcdef",
                "ModelDataSource": {"S3DataSource": source},
            },
        )
        variant = {
            "VariantName": "AllTraffic",
            "ModelName": "built",
            "InstanceType": "ml.g5.2xlarge",
            "InitialInstanceCount": 1,
        }
        sagemaker.create_endpoint_config(EndpointConfigName="built", ProductionVariants=[variant])
        sagemaker.create_endpoint(EndpointName="built", EndpointConfigName="built")

        def settled() -> Any:
            described = sagemaker.describe_endpoint(EndpointName="built")
            return described if not described["EndpointStatus"].endswith("ing") else None

        described = eventually(settled, 120)
        assert described["EndpointStatus"] == "InService", described
        runtime = clients.client("sagemaker-runtime", REGION)
        answer = runtime.invoke_endpoint(EndpointName="built", Body=json.dumps(BODIES[0]).encode())
        assert json.load(answer["Body"]) == [{"generated_text": "def"}]
        clients.close()
