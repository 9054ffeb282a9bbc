"""A Lambda function of `stacks/functions`, with its log group and its role."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from slipway.planning.statements import Statement
from slipway.stacks.constructs.statements import document_of, write_logs

_RUNTIME = "python3.14"
_LOG_RETENTION = logs.RetentionDays.THREE_MONTHS
_FUNCTIONS = Path(__file__).parents[1] / "functions"
# What a function imports of another function.
_IMPORTED = {"beside_others": ("endpoint_update",)}


@dataclass(frozen=True)
class HandlerFunction:
    resource: lambda_.CfnFunction
    role: iam.Role


def add_handler_function(
    scope: Construct,
    *,
    module: str,
    description: str,
    timeout_seconds: int,
    role_description: str,
    policy_name: str,
    statements: Sequence[Statement],
    log_key_arn: str | None,
    log_id: str = "FunctionLog",
    role_id: str = "FunctionRole",
) -> HandlerFunction:
    """Adds a function to a construct, and returns it.

    It adds the resources to the construct itself. A construct of their own would become part of
    their logical ids, and CloudFormation would replace the deployed resources.
    """
    log_group = add_log_group(scope, log_id, key_arn=log_key_arn)
    with tempfile.TemporaryDirectory() as folder:
        copy_function(module, Path(folder))
        code = assets.Asset(scope, "Code", path=folder)
    role = iam.Role(
        scope,
        role_id,
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        description=role_description,
        # Inline, so that the role never exists without its rights.
        inline_policies={policy_name: document_of([*statements, write_logs(log_group)])},
    )
    function = lambda_.CfnFunction(
        scope,
        "Function",
        description=description,
        code=lambda_.CfnFunction.CodeProperty(
            s3_bucket=code.s3_bucket_name, s3_key=code.s3_object_key
        ),
        handler=f"functions.{module}.handler",
        runtime=_RUNTIME,
        role=role.role_arn,
        logging_config=lambda_.CfnFunction.LoggingConfigProperty(
            log_group=log_group.log_group_name
        ),
        timeout=timeout_seconds,
    )
    return HandlerFunction(function, role)


def add_log_group(scope: Construct, construct_id: str, *, key_arn: str | None) -> logs.LogGroup:
    """Adds a log group that is deleted with its stack, and returns it."""
    log_group = logs.LogGroup(
        scope,
        construct_id,
        retention=_LOG_RETENTION,
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )
    resource = log_group.node.default_child
    assert isinstance(resource, logs.CfnLogGroup)  # noqa: S101  # for the type checker
    resource.kms_key_id = key_arn
    return log_group


def copy_function(module: str, folder: Path) -> None:
    """Copies what the function of a module imports into a folder, without the caches beside it."""
    name = module.partition(".")[0]
    names = (name, *_IMPORTED.get(name, ()))
    own = (pattern for each in names for pattern in (f"{each}.py", f"{each}/*.py"))
    for pattern in ("__init__.py", "answers.py", *own):
        for source in sorted(_FUNCTIONS.glob(pattern)):
            copied = folder / source.relative_to(_FUNCTIONS.parent)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copied)
