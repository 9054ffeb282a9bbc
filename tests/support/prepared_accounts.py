"""An account as `cdk bootstrap` and `cdk deploy foundation` leave it, without the CDK CLI.

The CLI takes eight seconds for both. tests/docs/test_guides.py runs them.
"""

import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from slipway.config.environments import Environment
from slipway.stacks.foundation_stack import FoundationStack
from tests.support.waiting import eventually
from tests.synth.assemblies import ROOT, new_app

# Returns a client of a service.
ClientOf = Callable[[str], Any]

# What `cdk bootstrap` deploys, as the CLI's package has it.
_BOOTSTRAP_TEMPLATE = ROOT / "node_modules/aws-cdk/lib/api/bootstrap/bootstrap-template.yaml"


def bootstrap(client: ClientOf) -> None:
    """Leaves what `cdk bootstrap` does: its template's stack."""
    _create(client, "CDKToolkit", _BOOTSTRAP_TEMPLATE.read_text("utf-8"), {})


def deploy_foundation(client: ClientOf, environment: Environment) -> None:
    """Leaves what `cdk deploy foundation` does, in an account that is bootstrapped."""
    with tempfile.TemporaryDirectory() as directory:
        artifact = synthesised_foundation(environment, Path(directory))
        publish_packages(client, Path(directory))
        _create(client, artifact.stack_name, json.dumps(artifact.template), artifact.tags)


def synthesised_foundation(
    environment: Environment, directory: Path
) -> cdk.cx_api.CloudFormationStackArtifact:
    # The CLI asks for the paths. Without them it would update the stack at the next deployment.
    app = new_app(directory, **{"aws:cdk:enable-path-metadata": True})
    target = cdk.Environment(account=environment.account, region=environment.region)
    stack = FoundationStack(app, "foundation", environment=environment, env=target)
    return app.synth().get_stack_artifact(stack.artifact_id)


def zipped(folder: Path) -> bytes:
    """Returns a folder as a ZIP file, as the CDK CLI makes it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return content.getvalue()


def publish_packages(client: ClientOf, assembly: Path) -> None:
    (listing,) = assembly.glob("*.assets.json")
    for asset in json.loads(listing.read_text("utf-8"))["files"].values():
        source = asset["source"]
        if source["packaging"] != "zip":
            continue
        package = zipped(assembly / source["path"])
        for place in asset["destinations"].values():
            client("s3").put_object(
                Bucket=place["bucketName"], Key=place["objectKey"], Body=package
            )


def _create(client: ClientOf, name: str, template: str, tags: Mapping[str, str]) -> None:
    cloudformation = client("cloudformation")
    cloudformation.create_stack(
        StackName=name,
        TemplateBody=template,
        Capabilities=["CAPABILITY_NAMED_IAM"],
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )

    def status() -> str:
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        found: str = stack["StackStatus"]
        return found

    eventually(lambda: not status().endswith("_IN_PROGRESS"))
    assert status() == "CREATE_COMPLETE"
