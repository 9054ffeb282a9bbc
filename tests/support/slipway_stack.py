"""The stack that Slipway makes of a model, on an account with what its foundation would have made.

The template is a golden one, so what runs here is what `cdk synth` renders; the container is the
stand-in, whose mode lies in the model data.
"""

import functools
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from slipway.embedded_aws.clock import AccountClock
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from slipway.stacks.constructs.handler_function import copy_function
from tests.support.accounts import access_to
from tests.support.clocks import MovableClock
from tests.support.golden_cases import make_plan
from tests.support.prepared_accounts import zipped
from tests.support.projects import DIGEST, LOCAL
from tests.support.stacks import Stacks, account_stacks
from tests.synth.assemblies import of_plans

MODEL = "autoscaling"
NAME = f"{MODEL}-local"
# The section `autoscaling` of its config.
SCALING = {
    "min_instance_count": 2,
    "max_instance_count": 6,
    "target_invocations_per_instance_per_minute": 600,
}
_TESTS = Path(__file__).parents[1]
_TEMPLATES = _TESTS / "golden" / "templates"
_PROGRAM = _TESTS / "embedded" / "hosting" / "stand_in.py"
# What the foundation lets CloudWatch Logs do with the artifact key.
_KEY_POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": f"logs.{LOCAL.region}.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey*"],
            "Resource": "*",
        }
    ],
}


@functools.cache
def golden_template(case: str) -> str:
    """Returns the template of a golden case, also of one whose template is no file."""
    path = _TEMPLATES / f"{case}.json"
    if path.exists():
        return path.read_text("utf-8")
    with tempfile.TemporaryDirectory() as directory:
        plan = make_plan(case, Path(directory))
        return json.dumps(of_plans(Path(directory) / "cdk.out", {case: plan}).template(case))


class SlipwayStack:
    def __init__(self, stacks: Stacks, directory: Path, model: str = MODEL) -> None:
        self.name = f"{model}-local"
        self._model = model
        self.stacks = stacks
        self.directory = directory
        self.access = access_to(stacks.aws.connection.url)
        lay_foundation(stacks)

    def publish(self, mode: str) -> str:
        """Puts an artifact whose container behaves as the mode says; returns its digest."""
        digest = mode.encode().hex().ljust(64, "0")
        self.stacks.client("s3").put_object(
            Bucket=LOCAL.artifact_bucket,
            Key=f"artifacts/{digest}/files/mode",
            Body=mode.encode(),
        )
        return digest

    def template(
        self, mode: str, file: Path | None = None, *, alarm_periods: int | None = None
    ) -> dict[str, Any]:
        """The stack's template, or an older one of it, with weights that behave so."""
        text = golden_template(self._model) if file is None else file.read_text("utf-8")
        template = self.deployable(text, mode)
        for resource in template["Resources"].values():
            if resource["Type"] == "AWS::CloudWatch::Alarm" and alarm_periods is not None:
                resource["Properties"]["EvaluationPeriods"] = alarm_periods
        return template

    def deployable(self, text: str, mode: str = "ok") -> dict[str, Any]:
        """A template that a test has rendered, with its packages and weights that behave so."""
        template: dict[str, Any] = json.loads(text.replace(DIGEST, self.publish(mode)))
        publish_functions(self.stacks, template)
        return template

    def create(self, mode: str, **options: Any) -> str:
        return self.stacks.create(self.name, self.template(mode), **options)

    def update(self, mode: str) -> str:
        return self.stacks.update(self.name, self.template(mode))

    def delete(self) -> str:
        return self.stacks.delete(self.name)

    def invoke(self, body: str = "x") -> str:
        runtime = self.stacks.client("sagemaker-runtime")
        answer = runtime.invoke_endpoint(EndpointName=self.name, Body=body)
        text: str = answer["Body"].read().decode()
        return text

    def invoke_or_none(self, body: str = "x") -> str | None:
        try:
            return self.invoke(body)
        except ClientError:
            return None

    def running(self) -> list[str]:
        folder = self.directory / "instances"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def publish_functions(stacks: Stacks, template: dict[str, Any]) -> None:
    """Puts the packages of a template's functions where the CDK CLI would put them."""
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Lambda::Function":
            code = resource["Properties"]["Code"]
            package = packaged_function(resource["Properties"]["Handler"])
            stacks.client("s3").put_object(Bucket=code["S3Bucket"], Key=code["S3Key"], Body=package)


def packaged_function(handler: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        module = handler.removeprefix("functions.").removesuffix(".handler")
        copy_function(module, Path(folder))
        return zipped(Path(folder))


def lay_foundation(stacks: Stacks) -> None:
    """Makes what a model's stack reads of the foundation's and the bootstrap's, and the buckets."""
    for bucket in (LOCAL.artifact_bucket, f"cdk-hnb659fds-assets-{LOCAL.account}-{LOCAL.region}"):
        stacks.client("s3").create_bucket(Bucket=bucket)
    topic = stacks.client("sns").create_topic(Name="notifications")["TopicArn"]
    key = stacks.client("kms").create_key(Policy=json.dumps(_KEY_POLICY))["KeyMetadata"]["Arn"]
    for name, value in (
        ("/slipway/local/notification-topic-arn", topic),
        ("/slipway/local/artifact-key-arn", key),
        ("/cdk-bootstrap/hnb659fds/version", "30"),
    ):
        stacks.client("ssm").put_parameter(Name=name, Value=value, Type="String")


@contextmanager
def slipway_stack(
    directory: Path,
    *,
    time_scale: float,
    model: str = MODEL,
    clock: AccountClock | None = None,
    **options: Any,
) -> Iterator[SlipwayStack]:
    """An account in which every timeout and wait of an endpoint is scaled, with a model's stack.

    The account's time begins with a minute. The model is a golden case; further options are those
    of `EmbeddedAws`.
    """
    programs = {"slipway/tensorrt": ContainerProgram((sys.executable, str(_PROGRAM)))}
    options = {"programs": programs, "clock": clock or MovableClock(), **options}
    with account_stacks(directory, time_scale=time_scale, **options) as stacks:
        yield SlipwayStack(stacks, directory, model)
