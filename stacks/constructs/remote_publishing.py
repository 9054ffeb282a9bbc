"""The build project in which `slipway publish NAME --remote` runs next to S3."""

import json
import shlex
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from constructs import Construct

from slipway.config.environments import Environment
from slipway.config.sections.remote_publishing import RemotePublishing
from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.remote_place import (
    BUILD_MODULE,
    CA_BUNDLE_FILE,
    RESULTS_PREFIX,
    SOURCES_PREFIX,
)
from slipway.planning.statements import Statement, allow
from slipway.s3_address import S3Address
from slipway.stacks.constructs.build_project import (
    BUILD_IMAGE,
    INTERFACES_REASON,
    BuildRole,
    add_build_project,
    network_interfaces_arn,
    network_statements,
    plain_variables,
)
from slipway.stacks.constructs.handler_function import add_handler_function
from slipway.stacks.constructs.statements import trusted

RESOURCE_TYPE = "Custom::SlipwayRemotePublishing"
_PYTHON = "3.12"
_QUEUED_TIMEOUT_MINUTES = 60
_FUNCTION_TIMEOUT_SECONDS = 60
# Otherwise CloudFormation would wait for an hour if the function died without an answer.
_SERVICE_TIMEOUT_SECONDS = 300
_CHECK = Path(__file__).parents[1] / "build_scripts" / "check_source.py"


class RemotePublishingProject(Construct):
    """A CodeBuild project, its role and log, and the function that ends builds with the project."""

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
            reasons[network_interfaces_arn(partition, region, account)] = INTERFACES_REASON
        publisher = trusted(
            self, "codebuild", environment.account, f"project/{environment.publish_project}"
        )
        project = add_build_project(
            self,
            name=environment.publish_project,
            description=f"Slipway: publishes the models of {environment.name}",
            role=BuildRole(
                publisher,
                f"Publishes the models of {environment.name}",
                "Publishing",
                statements,
                reasons,
            ),
            # Each build names its own file there.
            source=f"{place.bucket}/{SOURCES_PREFIX}none.zip",
            build_specification=build_specification(),
            environment=codebuild.CfnProject.EnvironmentProperty(
                type="LINUX_CONTAINER",
                compute_type=f"BUILD_GENERAL1_{settings.compute.upper()}",
                image=BUILD_IMAGE,
                image_pull_credentials_type="CODEBUILD",
                environment_variables=_variables(environment, settings),
            ),
            vpc=vpc,
            timeout_minutes=settings.time_limit_minutes,
            queued_timeout_minutes=_QUEUED_TIMEOUT_MINUTES,
            log_key_arn=log_key_arn,
        )
        self._end_builds_with(project, log_key_arn)

    def _end_builds_with(self, project: codebuild.CfnProject, log_key_arn: str | None) -> None:
        """Adds the function that stops the builds before the project is deleted."""
        function = add_handler_function(
            self,
            module="remote_publishing",
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
    check = _CHECK.read_text("utf-8")
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
    variables = plain_variables(plain)
    if settings.hub_token_secret is not None:
        variables.append(
            codebuild.CfnProject.EnvironmentVariableProperty(
                name="HF_TOKEN", value=settings.hub_token_secret, type="SECRETS_MANAGER"
            )
        )
    return variables


_JOBS_LOG = "/aws/sagemaker/TrainingJobs"


def publishing_statements(
    partition: str,
    environment: Environment,
    settings: RemotePublishing,
    place: ArtifactPlace,
    *,
    artifact_key_arn: str,
    compile_role_arn: str,
) -> tuple[list[Statement], dict[str, str]]:
    """Returns the statements of the build's role, and the reason of each wildcard in them."""
    bucket = f"arn:{partition}:s3:::{place.bucket}"
    here = f"{environment.region}:{environment.account}"
    jobs = f"arn:{partition}:sagemaker:{here}:training-job/compile-*"
    repositories = f"arn:{partition}:ecr:{here}:repository/{environment.repository_prefix}*"
    log = f"arn:{partition}:logs:{here}:log-group:{_JOBS_LOG}"
    prefixes = (place.artifacts_prefix, place.incoming_prefix, place.recipes_prefix)
    written = [f"{bucket}/{prefix}*" for prefix in prefixes]
    parameters = [
        f"arn:{partition}:ssm:{here}:parameter{name}"
        for name in (place.key_parameter, place.compile_role_parameter)
    ]
    statements = [
        allow(
            "FindArtifacts", ["s3:GetBucketAcl", "s3:GetBucketLocation", "s3:ListBucket"], bucket
        ),
        allow("WriteArtifacts", ["s3:GetObject", "s3:PutObject"], *written),
        allow(
            "ReadSource",
            ["s3:GetObject", "s3:GetObjectVersion"],
            f"{bucket}/{SOURCES_PREFIX}*",
        ),
        allow("WriteResult", ["s3:PutObject"], f"{bucket}/{RESULTS_PREFIX}*"),
        allow("TakeCompiled", ["s3:GetObject"], f"{bucket}/{place.output_prefix}*"),
        allow("UseArtifactKey", ["kms:Decrypt", "kms:GenerateDataKey"], artifact_key_arn),
        allow("FindFoundation", ["ssm:GetParameter"], *parameters),
        allow("FindCompiler", ["ecr:DescribeImages"], repositories),
        allow(
            "Compile",
            ["sagemaker:AddTags", "sagemaker:CreateTrainingJob", "sagemaker:DescribeTrainingJob"],
            jobs,
        ),
        allow(
            "PassCompileRole",
            ["iam:PassRole"],
            compile_role_arn,
            StringEquals={"iam:PassedToService": "sagemaker.amazonaws.com"},
        ),
        allow("ReadCompileLog", ["logs:DescribeLogStreams", "logs:GetLogEvents"], log, f"{log}:*"),
    ]
    reasons = {
        **dict.fromkeys(written, "Artifacts and recipes lie under their digests."),
        f"{bucket}/{SOURCES_PREFIX}*": "Sources lie under their digests.",
        f"{bucket}/{RESULTS_PREFIX}*": "Each build writes a file of its name.",
        f"{bucket}/{place.output_prefix}*": "Each job has a folder of its name.",
        jobs: "A job's name has its model and its inputs.",
        repositories: "Only the images that Slipway builds.",
        f"{log}:*": "SageMaker names the streams after the jobs.",
    }
    for number, uri in enumerate(settings.weights):
        source = S3Address.of(uri)
        objects = f"arn:{partition}:s3:::{source.bucket}/{source.key}*"
        statements += [
            allow(f"ReadWeights{number}", ["s3:GetObject"], objects),
            allow(
                f"FindWeights{number}",
                ["s3:ListBucket"],
                f"arn:{partition}:s3:::{source.bucket}",
                StringLike={"s3:prefix": f"{source.key}*"},
            ),
        ]
        reasons[objects] = "The environment names the prefix."
    if settings.key_arns:
        statements.append(allow("DecryptWeights", ["kms:Decrypt"], *settings.key_arns))
    if settings.hub_token_secret is not None:
        statements.append(
            allow("ReadToken", ["secretsmanager:GetSecretValue"], settings.hub_token_secret)
        )
    return statements, reasons
