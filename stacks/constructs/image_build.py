"""Builds images in the account, with CodeBuild, while CloudFormation waits."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as assets
from constructs import Construct, IDependable

from slipway.config.sections.image_builds import PUBLIC_BUILDS, BuildVpc, ImageBuilds
from slipway.planning.plan import ImagePlan
from slipway.planning.statements import allow
from stacks.constructs.handler_function import add_handler_function, add_log_group
from stacks.constructs.image_build_rights import build_statements, network_interfaces_arn
from stacks.constructs.statements import acknowledge_wildcards, document_of, write_logs

# It has Docker 28 and buildx.
_BUILD_IMAGE = "aws/codebuild/amazonlinux-x86_64-standard:5.0"
# 4 cores and 128 GB of disk; NVIDIA's images unpack to more than 10 GB.
_COMPUTE_TYPE = "BUILD_GENERAL1_MEDIUM"
# Together they are less than the hour that CloudFormation waits.
_BUILD_TIMEOUT_MINUTES = 45
_QUEUED_TIMEOUT_MINUTES = 10
# Far more than the longest call of CodeBuild's API, or the longest answer, takes.
_FUNCTION_TIMEOUT_SECONDS = 60
_PROGRAMS = Path(__file__).parents[1] / "image_build"
# CodeBuild's guide lists IN_PROGRESS, SUCCEEDED, FAILED and STOPPED as statuses of a state change.
# It lists TIMED_OUT and FAULT for phases only; the API's model has them for builds as well
# (https://docs.aws.amazon.com/codebuild/latest/userguide/sample-build-notifications.html, read on
# 2026-11-22; botocore's StatusType). Delivery is best effort
# (https://docs.aws.amazon.com/eventbridge/latest/ref/events-ref-codebuild.html). If the end of a
# build is not reported, CloudFormation waits for an hour. The stack therefore listens to every end
# of a build, whatever its status, and to the phases that end a build.
_STILL_RUNNING = ["IN_PROGRESS"]
_ENDING_PHASE_STATUSES = ["FAULT", "TIMED_OUT"]


@dataclass(frozen=True)
class ImageToBuild:
    """One image.

    Args:
        image: repository and tag.
        base_image: the BASE_IMAGE of its Dockerfile.
        target: the stage of its Dockerfile.
    """

    image: ImagePlan
    base_image: str
    target: str


class ImageBuild(Construct):
    """A CodeBuild project, and the function that starts it and answers CloudFormation.

    Args:
        scope: the image's stack.
        construct_id: name within the scope.
        images: the images to build; all go into one repository.
        sources: the build's folder, as an asset.
        dockerfile: path in that folder.
        after: resources that must exist before a build starts.
        settings: mirrors that the build downloads from, and the network that it runs in.
        ca_bundle: the mirrors' certificate authorities if they are not public.
    """

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
        function = self._function(project)
        earlier: Sequence[IDependable] = (*self._news(project, function), *after)
        for number, each in enumerate(images):
            request = cdk.CustomResource(
                self,
                f"Image{number}",
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
        log_group = add_log_group(self, "BuildLog", key_arn=self._log_key_arn)
        statements = build_statements(
            self,
            images[0].image,
            [each.base_image for each in images],
            [sources] if ca_bundle is None else [sources, ca_bundle],
            settings.vpc,
        )
        role = iam.Role(
            self,
            "BuildRole",
            assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"),
            description="Builds and pushes images",
            # Inline, so that the role never exists without its rights.
            inline_policies={"Building": document_of([*statements, write_logs(log_group)])},
        )
        reasons = {"*": "ECR's log-in token is the account's; the API knows no narrower resource."}
        if settings.vpc is not None:
            reasons["*"] += " Nor does EC2's for the network interfaces of a VPC."
            first, partition = images[0].image, cdk.Stack.of(self).partition
            reasons[network_interfaces_arn(partition, first.region, first.account)] = (
                "CodeBuild makes an interface for each build; conditions name service and subnets."
            )
        acknowledge_wildcards(role, reasons)
        project = codebuild.CfnProject(
            self,
            "Project",
            description=f"Slipway: builds {images[0].image.repository}",
            service_role=role.role_arn,
            encryption_key="alias/aws/s3",
            artifacts=codebuild.CfnProject.ArtifactsProperty(type="NO_ARTIFACTS"),
            source=codebuild.CfnProject.SourceProperty(
                type="S3",
                location=f"{sources.s3_bucket_name}/{sources.s3_object_key}",
                build_spec=build_specification(),
            ),
            environment=codebuild.CfnProject.EnvironmentProperty(
                type="LINUX_CONTAINER",
                compute_type=_COMPUTE_TYPE,
                image=_BUILD_IMAGE,
                image_pull_credentials_type="CODEBUILD",
                privileged_mode=True,
                environment_variables=[
                    codebuild.CfnProject.EnvironmentVariableProperty(
                        name=name, value=value, type="PLAINTEXT"
                    )
                    for name, value in _variables(dockerfile, settings, ca_bundle).items()
                ],
            ),
            vpc_config=None if settings.vpc is None else _vpc_config(settings.vpc),
            logs_config=codebuild.CfnProject.LogsConfigProperty(
                cloud_watch_logs=codebuild.CfnProject.CloudWatchLogsConfigProperty(
                    status="ENABLED", group_name=log_group.log_group_name
                )
            ),
            timeout_in_minutes=_BUILD_TIMEOUT_MINUTES,
            queued_timeout_in_minutes=_QUEUED_TIMEOUT_MINUTES,
        )
        cdk.Validations.of(project).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions::AwsSolutions-CB4",
                reason="A build leaves no artifact and no cache behind that a key would encrypt.",
            )
        )
        return project

    def _function(self, project: codebuild.CfnProject) -> lambda_.CfnFunction:
        return add_handler_function(
            self,
            program=_PROGRAMS / "handler.py",
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
        ).resource

    def _news(
        self, project: codebuild.CfnProject, function: lambda_.CfnFunction
    ) -> list[IDependable]:
        """Adds the function's calls when a build is over; returns what a build must wait for."""
        # Two rules: AWS's guide says that one rule for both kinds of event may stop working.
        patterns: tuple[tuple[str, str, str, dict[str, object]], ...] = (
            (
                "BuildIsOver",
                "A build is over, and CloudFormation waits for the news",
                "CodeBuild Build State Change",
                {"build-status": [{"anything-but": _STILL_RUNNING}]},
            ),
            (
                "BuildPhaseIsOver",
                "A phase ended its build, and CloudFormation waits for the news",
                "CodeBuild Build Phase Change",
                {"completed-phase-status": _ENDING_PHASE_STATUSES},
            ),
        )
        found: list[IDependable] = []
        for name, description, kind, detail in patterns:
            rule = events.CfnRule(
                self,
                name,
                description=description,
                event_pattern={
                    "source": ["aws.codebuild"],
                    "detail-type": [kind],
                    "detail": {"project-name": [project.ref], **detail},
                },
                targets=[events.CfnRule.TargetProperty(id="Function", arn=function.attr_arn)],
            )
            permission = lambda_.CfnPermission(
                self,
                f"{name}Calls",
                action="lambda:InvokeFunction",
                function_name=function.ref,
                principal="events.amazonaws.com",
                source_arn=rule.attr_arn,
            )
            found += [rule, permission]
        return found


def build_specification() -> str:
    """Returns the build specification, which runs the script in a separate shell.

    The script may therefore exit in any way.
    """
    script = (_PROGRAMS / "build.sh").read_text("utf-8")
    return json.dumps(
        {"version": 0.2, "phases": {"build": {"commands": [f"bash -c {shlex.quote(script)}"]}}}
    )


def _vpc_config(vpc: BuildVpc) -> codebuild.CfnProject.VpcConfigProperty:
    return codebuild.CfnProject.VpcConfigProperty(
        vpc_id=vpc.vpc_id,
        subnets=list(vpc.subnet_ids),
        security_group_ids=list(vpc.security_group_ids),
    )


def _variables(
    dockerfile: str, settings: ImageBuilds, ca_bundle: assets.Asset | None
) -> dict[str, str]:
    """Returns the variables of the project; a mirror's variables only if there is a mirror."""
    variables: dict[str, str | None] = {
        "DOCKERFILE": dockerfile,
        "UV_DEFAULT_INDEX": settings.index_url,
        "UV_PYTHON_INSTALL_MIRROR": settings.python_url,
        "NEURON_INDEX": settings.neuron_index_url,
        "CA_BUNDLE": None if ca_bundle is None else ca_bundle.s3_object_url,
    }
    return {name: value for name, value in variables.items() if value is not None}
