"""The capture of requests and answers: SageMaker's settings, and the role's rights."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from slipway.planning.capture import CapturePlan
from slipway.planning.plan import DeploymentPlan
from stacks.constructs.mode_rights import ModeRights
from stacks.constructs.statements import allow

_MODES = {"input": "Input", "output": "Output"}


def capture_config(
    capture: CapturePlan, key_arn: str | None
) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty:
    """Returns the settings of an endpoint configuration.

    Bodies of other content types than these two are captured in Base64.

    Args:
        capture: the plan's.
        key_arn: the key that encrypts what is captured; None for the bucket's own encryption.
    """
    return sagemaker.CfnEndpointConfig.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=capture.sampling_percent,
        destination_s3_uri=capture.uri,
        kms_key_id=key_arn,
        capture_options=[
            sagemaker.CfnEndpointConfig.CaptureOptionProperty(capture_mode=_MODES[each])
            for each in capture.what
        ],
        capture_content_type_header=(
            sagemaker.CfnEndpointConfig.CaptureContentTypeHeaderProperty(
                json_content_types=["application/json"], csv_content_types=["text/csv"]
            )
        ),
    )


def capture_rights(
    scope: Construct,
    *,
    plan: DeploymentPlan,
    capture: CapturePlan,
    role: iam.Role,
    key_arn: str | None,
) -> ModeRights:
    """Returns the rights to write below the endpoint's own folder alone, and to use the key.

    Args:
        scope: the endpoint's stack.
        plan: names the endpoint.
        capture: the plan's.
        role: the execution role.
        key_arn: the key that encrypts what is captured; None for the bucket's own encryption.
    """
    bucket = f"arn:{cdk.Stack.of(scope).partition}:s3:::{capture.bucket}"
    folder = f"{bucket}/{capture.prefix}{plan.endpoint_name}/*"
    statements = [allow("WriteCaptured", ["s3:PutObject"], folder)]
    if key_arn is not None:
        statements.append(allow("EncryptCaptured", ["kms:GenerateDataKey"], key_arn))
    return ModeRights(
        scope,
        "DataCapture",
        role=role,
        statements=statements,
        reasons={folder: "SageMaker makes folders of the variant and the hour."},
    )
