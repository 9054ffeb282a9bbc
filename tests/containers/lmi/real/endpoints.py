"""An LMI endpoint of the embedded AWS with the real server."""

import contextlib
import json

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.server import EmbeddedAws
from tests.containers.lmi.real import servers
from tests.support.accounts import SECRET_ACCESS_KEY
from tests.support.roles import make_role
from tests.support.waiting import eventually

REGION = "us-east-1"
REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"


@contextlib.contextmanager
def another_embedded_aws(directory, programs):
    with EmbeddedAws(
        port=0, secret_access_key=SECRET_ACCESS_KEY, directory=directory, programs=programs
    ) as aws:
        clients = LoopbackClients(aws.connection)
        yield clients
        clients.close()


class Endpoint:
    def __init__(self, clients):
        self._sagemaker = clients.client("sagemaker", REGION)
        self._runtime = clients.client("sagemaker-runtime", REGION)
        self._s3 = clients.client("s3", REGION)
        iam = clients.client("iam", REGION)
        # Every embedded AWS of this process has the same roles.
        with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
            make_role(iam, "lmi")

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
