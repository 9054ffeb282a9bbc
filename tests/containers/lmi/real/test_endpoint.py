"""LMI endpoints of the embedded AWS with the real server: AWS's image, ours, and variables."""

import contextlib
import json
from dataclasses import replace

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from slipway.facts.lmi.versions import model_of_variables
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.packages import SLEEPER
from tests.support.accounts import embedded_aws
from tests.support.deployments import lmi
from tests.support.roles import make_role
from tests.support.waiting import eventually

pytestmark = pytest.mark.djl_serving

REGION = "us-east-1"
AWSS_IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference"
OUR_IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/slipway/lmi"


class Endpoint:
    def __init__(self, clients):
        self._sagemaker = clients.client("sagemaker", REGION)
        self._runtime = clients.client("sagemaker-runtime", REGION)
        self._s3 = clients.client("s3", REGION)
        make_role(clients.client("iam", REGION), "lmi")

    def put(self, files, prefix):
        for path, content in files.items():
            self._s3.put_object(Bucket=servers.BUCKET, Key=f"{prefix}/files/{path}", Body=content)
        return f"s3://{servers.BUCKET}/{prefix}/files/"

    def configure(self, name, image, model_data, environment, **model):
        source = {"S3Uri": model_data, "S3DataType": "S3Prefix", "CompressionType": "None"}
        self._sagemaker.create_model(
            ModelName=name,
            ExecutionRoleArn="arn:aws:iam::123456789012:role/lmi",
            PrimaryContainer={
                "Image": image,
                "Environment": environment,
                "ModelDataSource": {"S3DataSource": source},
            },
            **model,
        )
        variant = {
            "VariantName": "AllTraffic",
            "ModelName": name,
            "InstanceType": "ml.g5.2xlarge",
            "InitialInstanceCount": 1,
        }
        self._sagemaker.create_endpoint_config(
            EndpointConfigName=name, ProductionVariants=[variant]
        )

    def create(self, configuration):
        self._sagemaker.create_endpoint(EndpointName="lmi", EndpointConfigName=configuration)
        described = eventually(self.settled, 120)
        assert described["EndpointStatus"] == "InService", described

    def update(self, configuration):
        self._sagemaker.update_endpoint(EndpointName="lmi", EndpointConfigName=configuration)

    def settled(self):
        """Returns the description of an endpoint that is not about to change; or None."""
        described = self._sagemaker.describe_endpoint(EndpointName="lmi")
        return described if not described["EndpointStatus"].endswith("ing") else None

    def answer(self, body):
        encoded = json.dumps(body).encode()
        return json.load(self._runtime.invoke_endpoint(EndpointName="lmi", Body=encoded)["Body"])


@pytest.fixture
def new_endpoint(tmp_path_factory):
    """Makes an endpoint to be, of an embedded AWS of its own whose bucket has weights."""
    with contextlib.ExitStack() as stack:

        def make(repository, program, **weights):
            directory, programs = tmp_path_factory.mktemp("aws"), {repository: program}
            aws = stack.enter_context(embedded_aws(directory, programs=programs))
            clients = LoopbackClients(aws.connection)
            stack.callback(clients.close)
            servers.put_weights(clients.client("s3", REGION), **weights)
            return Endpoint(clients)

        yield make


def test_an_endpoint_answers_and_is_updated_over_a_stand_in(home, new_endpoint):
    endpoint = new_endpoint("djl-inference", home.program)
    for name, tokens in (("first", 2), ("second", 3)):
        config = servers.config_for(home, "deepspeed", options={"max_new_tokens": tokens})
        endpoint.configure(
            name,
            f"{AWSS_IMAGE}:{home.version}",
            endpoint.put(servers.package_for(config), name),
            {"PYTHONPATH": servers.stand_in_path("deepspeed")},
        )
    old, new = ([{"generated_text": text}] for text in ("de", "def"))
    endpoint.create("first")
    assert endpoint.answer({"inputs": "abc"}) == old
    endpoint.update("second")
    while not endpoint.settled():
        # The old server answers until the new one is there, which runs beside it.
        assert endpoint.answer({"inputs": "abc"}) in (old, new)
    assert endpoint.settled()["EndpointConfigName"] == "second"
    assert endpoint.answer({"inputs": "abc"}) == new


# The last LMI version that Slipway builds an image for.
@pytest.mark.djl_version(at_most="0.27.0")
def test_an_endpoint_of_our_image_answers_over_a_stand_in(home, new_endpoint):
    config = servers.config_of_our_image(home, "deepspeed", options={"max_new_tokens": 3})
    path = {"PYTHONPATH": servers.path_in_our_image("deepspeed")}
    program = replace(home.program, environment={**home.program.environment, **path})
    endpoint = new_endpoint("slipway/lmi", program)
    model_data = endpoint.put(servers.package_for(config), "built")
    endpoint.configure("built", f"{OUR_IMAGE}:{home.version}-0123456789abcdef", model_data, {})
    endpoint.create("built")
    assert endpoint.answer({"inputs": "abc"}) == [{"generated_text": "def"}]


@pytest.mark.djl_version(at_least=model_of_variables()[1])
def test_an_endpoint_without_network_serves_weights_that_sagemaker_placed(home, new_endpoint):
    config = servers.config_without_code(home, configuration="environment", rolling_batch="disable")
    told = lmi(config).environment_with(has_settings=True)
    # Publishing refuses a model.py beside weights: it is what the server would run.
    weights = {**servers.WEIGHTS, "model.py": SLEEPER}
    endpoint = new_endpoint("djl-inference", home.program, weights=weights)
    model_data = f"s3://{servers.BUCKET}/artifacts/{servers.WEIGHTS_DIGEST}/files/"
    image = f"{AWSS_IMAGE}:{home.version}"
    endpoint.configure("told", image, model_data, told, EnableNetworkIsolation=True)
    endpoint.create("told")
    assert endpoint.answer({"seconds": 0}) == {"slept": 0}
