"""Apps as the CDK CLI synthesises them, what a synthesis wrote, and models to synthesise."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk

import slipway
from slipway.config.environments import Environment
from slipway.planning.plan import DeploymentPlan
from slipway.project import Project
from slipway.stacks.assembly import ProjectStacks, Selection
from slipway.stacks.endpoint_stack import EndpointStack
from tests.support.projects import config_text
from tests.support.starts import count_start

Process = subprocess.Popen[str]
ROOT = Path(slipway.__file__).parents[1]
# What the CLI hands to the app.
CONTEXT: Mapping[str, Any] = json.loads((ROOT / "cdk.json").read_text("utf-8"))["context"]

AUTOSCALING = (
    "\nalarms:\n",
    "\nautoscaling:\n  min_instance_count: 2\n  max_instance_count: 6\n"
    "  target_invocations_per_instance_per_minute: 600\n\nalarms:\n",
)
BAD = config_text(
    "bad",
    ("  max_batch_size: 8\n", "  max_batchsize: 8\n"),
    ("parameters: 124439808", 'parameters: "124439808"'),
    ("instances: [ml.g4dn.xlarge]", "instances: [ml.g4dn.xlarg]"),
    ("  instance_count: 2\n", "  instance_count: 2\n  instance_count: 3\n"),
    ("model_data_download_timeout_seconds: 600", "model_data_download_timeout_seconds: 59"),
    ("health_check_timeout_seconds: 600", "health_check_timeout_seconds: 3601"),
)
MODELS = {
    "fixed": config_text("fixed"),
    "scaled": config_text("scaled", AUTOSCALING),
    "bad": BAD,
    "fresh": config_text("fresh"),
    "stale": config_text("stale"),
    # File names that no stack can have, or that another one has.
    "foundation": config_text("foundation"),
    "Not_A_Name": config_text("Not_A_Name"),
    "雪": config_text("雪"),
}
GOOD = ("fixed", "scaled")


def new_app(outdir: Path, *, validates: bool = False, **context: Any) -> cdk.App:
    """Returns an app with the feature flags of cdk.json, and further context.

    With `validates` CloudFormation's validation runs over its templates. A process that does so for
    the first time takes eight seconds.
    """
    return cdk.App(
        outdir=str(outdir),
        context={**CONTEXT, **context},
        analytics_reporting=False,
        builtin_cloud_formation_validation=validates,
    )


@dataclass(frozen=True)
class Assembly:
    """What a synthesis wrote."""

    directory: Path

    def template_file(self, construct_id: str) -> Path:
        return self.directory / f"{construct_id}.template.json"

    def template(self, construct_id: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.template_file(construct_id).read_text("utf-8"))
        return content

    def resources(self, construct_id: str, kind: str) -> dict[str, dict[str, Any]]:
        """Returns a stack's resources of one type, by logical id."""
        found = self.template(construct_id).get("Resources", {})
        return {name: item for name, item in found.items() if item["Type"] == kind}

    def named(self, construct_id: str, kind: str, prefix: str) -> tuple[str, dict[str, Any]]:
        """Returns logical id and resource of the one whose logical id begins so."""
        found = self.resources(construct_id, kind)
        ((name, resource),) = [item for item in found.items() if item[0].startswith(prefix)]
        return name, resource

    def only(self, construct_id: str, kind: str) -> dict[str, Any]:
        (resource,) = self.resources(construct_id, kind).values()
        return resource

    def stacks(self) -> dict[str, dict[str, Any]]:
        manifest = json.loads((self.directory / "manifest.json").read_text("utf-8"))
        return {
            name: artifact
            for name, artifact in manifest["artifacts"].items()
            if artifact["type"] == "aws:cloudformation:stack"
        }

    def annotations(self, construct_id: str, level: str) -> list[str]:
        """Returns a stack's messages of a level: `error`, `warning` or `info`."""
        artifact = self.stacks()[construct_id]
        metadata = dict(artifact.get("metadata", {}))
        if name := artifact.get("additionalMetadataFile"):
            metadata |= json.loads((self.directory / name).read_text("utf-8"))
        return [
            entry["data"]
            for entries in metadata.values()
            for entry in entries
            if entry["type"] == f"aws:cdk:{level}"
        ]


def add_stacks(app: cdk.App, project: Project, selection: Selection) -> None:
    ProjectStacks(app, project, selection).add_selected()


def synthesised(
    project: Project, outdir: Path, *, validates: bool = False, **selection: Any
) -> Assembly:
    app = new_app(outdir, validates=validates)
    add_stacks(app, project, Selection(**selection))
    app.synth()
    return Assembly(outdir)


def of_plans(outdir: Path, plans: Mapping[str, DeploymentPlan]) -> Assembly:
    app = new_app(outdir)
    for name, plan in plans.items():
        EndpointStack(app, name, plan=plan, env=target_of(plan.environment))
    app.synth()
    return Assembly(outdir)


def target_of(environment: Environment) -> cdk.Environment:
    return cdk.Environment(account=environment.account, region=environment.region)


def run_app(root: Path, output: Path, variables: Mapping[str, str], **context: str) -> Process:
    """Starts a project's own app.py as the CDK CLI does."""
    count_start("cdk app")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "CDK_OUTDIR": str(output),
        # The checks of the templates are tests of their own, and slow.
        "CDK_CONTEXT_JSON": json.dumps(
            {**CONTEXT, "@aws-cdk/core:validateAgainstDefaultRules": False, **context}
        ),
        **variables,
    }
    return subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
