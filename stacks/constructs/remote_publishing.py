"""The build project in which `slipway publish NAME --remote` runs next to S3."""

import json
import shlex
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct

from slipway.config.environments import Environment
from slipway.config.sections.remote_publishing import RemotePublishing
from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.remote_place import BUILD_MODULE, CA_BUNDLE_FILE, SOURCES_PREFIX
from slipway.planning.statements import allow
from stacks.constructs.handler_function import add_handler_function, add_log_group
from stacks.constructs.image_build_rights import network_interfaces_arn, network_statements
from stacks.constructs.remote_publishing_rights import publishing_statements
from stacks.constructs.statements import acknowledge_wildcards, document_of, write_logs

RESOURCE_TYPE = "Custom::SlipwayRemotePublishing"
# It has Python 3.12, and the AWS CLI is not needed.
_BUILD_IMAGE = "aws/codebuild/amazonlinux-x86_64-standard:5.0"
_PYTHON = "3.12"
_QUEUED_TIMEOUT_MINUTES = 60
_FUNCTION_TIMEOUT_SECONDS = 60
# Otherwise CloudFormation would wait for an hour if the function died without an answer.
_SERVICE_TIMEOUT_SECONDS = 300
_PROGRAMS = Path(__file__).parents[1] / "remote_publishing"


class RemotePublishingProject(Construct):
    """A CodeBuild project, its role and log, and the function that ends builds with the project.

    Args:
        scope: the foundation.
        construct_id: name within the scope.
        environment: account, region and names.
        settings: the environment's `remote_publishing`.
        place: the environment's artifacts.
        artifact_key_arn: the key that encrypts them.
        compile_role_arn: the role that compile jobs get.
        log_key_arn: the key of the log groups; None for CloudWatch Logs' own.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        settings: RemotePublishing,
        place: ArtifactPlace,
        artifact_key_arn: str,
        compile_role_arn: str,
        log_key_arn: str | None,
    ) -> None:
        super().__init__(scope, construct_id)
        partition = cdk.Stack.of(self).partition
        vpc = environment.image_builds.vpc
        log_group = add_log_group(self, "BuildLog", key_arn=log_key_arn)
        statements, reasons = publishing_statements(
            partition,
            environment,
            settings,
            place,
            artifact_key_arn=artifact_key_arn,
            compile_role_arn=compile_role_arn,
        )
        if vpc is not None:
            region, account = environment.region, environment.account
            statements += network_statements(partition, region, account, vpc)
            reasons["*"] = "EC2's API knows no narrower resource for the interfaces of a VPC."
            reasons[network_interfaces_arn(partition, region, account)] = (
                "CodeBuild makes an interface for each build; conditions name service and subnets."
            )
        role = iam.Role(
            self,
            "BuildRole",
            assumed_by=iam.ServicePrincipal(
                "codebuild.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": environment.account}},
            ),
            description=f"Publishes the models of {environment.name}",
            # Inline, so that the role never exists without its rights.
            inline_policies={"Publishing": document_of([*statements, write_logs(log_group)])},
        )
        acknowledge_wildcards(role, reasons)
        project = codebuild.CfnProject(
            self,
            "Project",
            name=environment.publish_project,
            description=f"Slipway: publishes the models of {environment.name}",
            service_role=role.role_arn,
            encryption_key="alias/aws/s3",
            artifacts=codebuild.CfnProject.ArtifactsProperty(type="NO_ARTIFACTS"),
            source=codebuild.CfnProject.SourceProperty(
                type="S3",
                # Each build names its own file there.
                location=f"{place.bucket}/{SOURCES_PREFIX}none.zip",
                build_spec=build_specification(),
            ),
            environment=codebuild.CfnProject.EnvironmentProperty(
                type="LINUX_CONTAINER",
                compute_type=f"BUILD_GENERAL1_{settings.compute.upper()}",
                image=_BUILD_IMAGE,
                image_pull_credentials_type="CODEBUILD",
                environment_variables=_variables(environment, settings),
            ),
            vpc_config=None
            if vpc is None
            else codebuild.CfnProject.VpcConfigProperty(
                vpc_id=vpc.vpc_id,
                subnets=list(vpc.subnet_ids),
                security_group_ids=list(vpc.security_group_ids),
            ),
            logs_config=codebuild.CfnProject.LogsConfigProperty(
                cloud_watch_logs=codebuild.CfnProject.CloudWatchLogsConfigProperty(
                    status="ENABLED", group_name=log_group.log_group_name
                )
            ),
            timeout_in_minutes=settings.time_limit_minutes,
            queued_timeout_in_minutes=_QUEUED_TIMEOUT_MINUTES,
        )
        cdk.Validations.of(project).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions::AwsSolutions-CB4",
                reason="A build leaves no artifact and no cache behind that a key would encrypt.",
            )
        )
        self._end_builds_with(project, log_key_arn)

    def _end_builds_with(self, project: codebuild.CfnProject, log_key_arn: str | None) -> None:
        """Adds the function that stops the builds before the project is deleted."""
        function = add_handler_function(
            self,
            program=_PROGRAMS / "handler.py",
            description="Slipway: stops the builds of a project that is deleted",
            timeout_seconds=_FUNCTION_TIMEOUT_SECONDS,
            role_description="Stops the builds of a project that is deleted",
            policy_name="Stopping",
            statements=[
                allow(
                    "StopBuilds",
                    [
                        "codebuild:BatchGetBuilds",
                        "codebuild:ListBuildsForProject",
                        "codebuild:StopBuild",
                    ],
                    project.attr_arn,
                )
            ],
            log_key_arn=log_key_arn,
        ).resource
        cdk.CustomResource(
            self,
            "Builds",
            service_token=function.attr_arn,
            resource_type=RESOURCE_TYPE,
            service_timeout=cdk.Duration.seconds(_SERVICE_TIMEOUT_SECONDS),
            properties={"ProjectName": project.ref},
        )


def build_specification() -> str:
    """Returns the build specification.

    Every step runs in one shell. The files of the source run only after the check of their digest.
    """
    check = (_PROGRAMS / "check_source.py").read_text("utf-8")
    install = [
        f"python -I -c {shlex.quote(check)}",
        # A mirror's certificates take the place of the public ones for pip alone.
        f'if [ -e {CA_BUNDLE_FILE} ] && [ -n "${{PIP_INDEX_URL:-}}" ]; then '
        f'export PIP_CERT="$PWD/{CA_BUNDLE_FILE}"; fi',
        "python -m pip install --quiet --no-deps --require-hashes --requirement requirements.txt",
        # Beside the public ones for a mirror of the Hub, and for S3.
        f"if [ -e {CA_BUNDLE_FILE} ]; then "
        f'cat "$(python -m certifi)" {CA_BUNDLE_FILE} > certificates.pem; '
        'export SSL_CERT_FILE="$PWD/certificates.pem"; fi',
        # Pure Python without dependencies of its own: to unpack it is to install it.
        "python -m zipfile --extract slipway-*.whl code",
    ]
    publish = [f'cd project && PYTHONPATH="$CODEBUILD_SRC_DIR/code" python -m {BUILD_MODULE}']
    return json.dumps(
        {
            "version": 0.2,
            "phases": {
                "install": {"runtime-versions": {"python": _PYTHON}, "commands": install},
                "build": {"commands": publish},
            },
        }
    )


def _variables(
    environment: Environment, settings: RemotePublishing
) -> list[codebuild.CfnProject.EnvironmentVariableProperty]:
    """Returns the variables of the project; a mirror's or the token's only if there is one."""
    plain = {"PIP_INDEX_URL": environment.image_builds.index_url, "HF_ENDPOINT": settings.hub_url}
    variables = [
        codebuild.CfnProject.EnvironmentVariableProperty(name=name, value=value, type="PLAINTEXT")
        for name, value in plain.items()
        if value is not None
    ]
    if settings.hub_token_secret is not None:
        variables.append(
            codebuild.CfnProject.EnvironmentVariableProperty(
                name="HF_TOKEN", value=settings.hub_token_secret, type="SECRETS_MANAGER"
            )
        )
    return variables
