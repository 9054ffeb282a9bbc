"""Builds images in the account, with CodeBuild, while CloudFormation waits."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as assets
from constructs import Construct, IDependable

from slipway.config.sections.image_builds import PUBLIC_BUILDS, ImageBuilds
from slipway.planning.plan import ImagePlan
from slipway.planning.statements import allow
from slipway.stacks.constructs.build_project import (
    BUILD_IMAGE,
    INTERFACES_REASON,
    BuildRole,
    add_build_project,
    build_statements,
    network_interfaces_arn,
    plain_variables,
)
from slipway.stacks.constructs.handler_function import add_handler_function
from slipway.stacks.constructs.statements import document_of, trusted

# 4 cores and 128 GB of disk; NVIDIA's images unpack to more than 10 GB.
_COMPUTE_TYPE = "BUILD_GENERAL1_MEDIUM"
# Together they are less than the hour that CloudFormation waits.
_BUILD_TIMEOUT_MINUTES = 45
_QUEUED_TIMEOUT_MINUTES = 10
# Lambda's most. The function looks at a build for less, and then calls itself.
_FUNCTION_TIMEOUT_SECONDS = 900
_SCRIPT = Path(__file__).parents[1] / "build_scripts" / "build_image.sh"


@dataclass(frozen=True)
class ImageToBuild:
    """One image: a stage of the Dockerfile, on a base that has a name such as `trt10.13`."""

    base: str
    image: ImagePlan
    base_image: str
    target: str


class ImageBuild(Construct):
    """A CodeBuild project, and the function that starts it and answers CloudFormation."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        images: Sequence[ImageToBuild],
        sources: assets.Asset,
        dockerfile: str,
        after: Sequence[IDependable],
        settings: ImageBuilds = PUBLIC_BUILDS,
        ca_bundle: assets.Asset | None = None,
        log_key_arn: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._log_key_arn = log_key_arn
        project = self._project(images, sources, dockerfile, settings, ca_bundle)
        function, right = self._function(project)
        earlier: Sequence[IDependable] = (right, *after)
        for each in images:
            request = cdk.CustomResource(
                self,
                # Not its number, which another base before it would shift.
                f"Image-{each.base}-{each.target}",
                service_token=function.attr_arn,
                resource_type="Custom::SlipwayImage",
                properties={
                    "ProjectName": project.ref,
                    "ImageUri": each.image.uri,
                    "BaseImage": each.base_image,
                    "Target": each.target,
                },
            )
            request.node.add_dependency(*earlier)
            # One after another: a new account runs one build at a time, and refuses to queue
            # several.
            earlier = (*earlier, request)

    def _project(
        self,
        images: Sequence[ImageToBuild],
        sources: assets.Asset,
        dockerfile: str,
        settings: ImageBuilds,
        ca_bundle: assets.Asset | None,
    ) -> codebuild.CfnProject:
        first, partition = images[0].image, cdk.Stack.of(self).partition
        statements = build_statements(
            self,
            first,
            [each.base_image for each in images],
            [sources] if ca_bundle is None else [sources, ca_bundle],
            settings.vpc,
        )
        reasons = {"*": "ECR's log-in token is the account's; the API knows no narrower resource."}
        if settings.vpc is not None:
            reasons["*"] += " Nor does EC2's for the network interfaces of a VPC."
            interfaces = network_interfaces_arn(partition, first.region, first.account)
            reasons[interfaces] = INTERFACES_REASON
        return add_build_project(
            self,
            description=f"Slipway: builds {first.repository}",
            role=BuildRole(
                # CloudFormation chooses the project's name, and makes the role before it.
                trusted(self, "codebuild", first.account, "project/*"),
                "Builds and pushes images",
                "Building",
                statements,
                reasons,
            ),
            source=f"{sources.s3_bucket_name}/{sources.s3_object_key}",
            build_specification=build_specification(),
            environment=codebuild.CfnProject.EnvironmentProperty(
                type="LINUX_CONTAINER",
                compute_type=_COMPUTE_TYPE,
                image=BUILD_IMAGE,
                image_pull_credentials_type="CODEBUILD",
                privileged_mode=True,
                environment_variables=plain_variables(_variables(dockerfile, settings, ca_bundle)),
            ),
            vpc=settings.vpc,
            timeout_minutes=_BUILD_TIMEOUT_MINUTES,
            queued_timeout_minutes=_QUEUED_TIMEOUT_MINUTES,
            log_key_arn=self._log_key_arn,
        )

    def _function(self, project: codebuild.CfnProject) -> tuple[lambda_.CfnFunction, iam.CfnPolicy]:
        """Adds the function, and its right to call itself, which a build must wait for."""
        function = add_handler_function(
            self,
            module="image_build",
            description="Slipway: starts builds and tells CloudFormation how they ended",
            timeout_seconds=_FUNCTION_TIMEOUT_SECONDS,
            role_description="Starts builds of images and tells CloudFormation how they ended",
            policy_name="Building",
            statements=[
                allow(
                    "Builds", ["codebuild:BatchGetBuilds", "codebuild:StartBuild"], project.attr_arn
                )
            ],
            log_key_arn=self._log_key_arn,
        )
        # Not in the role, which the function refers to.
        right = iam.CfnPolicy(
            self,
            "CallsItself",
            policy_name="CallsItself",
            policy_document=document_of(
                [allow("CallItself", ["lambda:InvokeFunction"], function.resource.attr_arn)]
            ),
            roles=[function.role.role_name],
        )
        return function.resource, right


def build_specification() -> str:
    """Returns the build specification, which runs the script in a separate shell.

    The script may therefore exit in any way.
    """
    script = _SCRIPT.read_text("utf-8")
    return json.dumps(
        {"version": 0.2, "phases": {"build": {"commands": [f"bash -c {shlex.quote(script)}"]}}}
    )


def _variables(
    dockerfile: str, settings: ImageBuilds, ca_bundle: assets.Asset | None
) -> dict[str, str | None]:
    return {
        "DOCKERFILE": dockerfile,
        "UV_DEFAULT_INDEX": settings.index_url,
        "UV_PYTHON_INSTALL_MIRROR": settings.python_url,
        "NEURON_INDEX": settings.neuron_index_url,
        "CA_BUNDLE": None if ca_bundle is None else ca_bundle.s3_object_url,
    }
