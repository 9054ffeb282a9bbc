"""The queue of an asynchronous endpoint: SageMaker's settings, and the role's rights."""

from collections.abc import Iterator

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from slipway.planning.asynchronous import AsyncPlan
from stacks.constructs.mode_rights import ModeRights
from stacks.constructs.statements import allow


def async_config(queue: AsyncPlan) -> sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty:
    """Returns the settings of an endpoint configuration."""
    notification = None
    if queue.topic_arns:
        notification = sagemaker.CfnEndpointConfig.AsyncInferenceNotificationConfigProperty(
            success_topic=queue.success_topic_arn, error_topic=queue.error_topic_arn
        )
    failure = queue.failure_output
    return sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty(
        client_config=sagemaker.CfnEndpointConfig.AsyncInferenceClientConfigProperty(
            max_concurrent_invocations_per_instance=queue.max_concurrent_invocations_per_instance
        ),
        output_config=sagemaker.CfnEndpointConfig.AsyncInferenceOutputConfigProperty(
            kms_key_id=queue.output_key_arn,
            notification_config=notification,
            s3_failure_path=None if failure is None else failure.uri,
            s3_output_path=queue.output.uri,
        ),
    )


def async_rights(scope: Construct, *, queue: AsyncPlan, role: iam.Role) -> ModeRights:
    """Returns the rights to read requests, to write answers and failures, and to tell the topics.

    AWS's page names the four actions on objects and topics. It names ListBucket too, for objects
    instead of buckets, where it has no effect. S3 wants both actions on a key for an upload in
    parts, and SNS wants both for a topic with a key. Sources, read 2026-11-24:
    https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-create-endpoint-prerequisites.html
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuAndPermissions.html
    https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html

    Args:
        scope: the endpoint's stack.
        queue: the plan's.
        role: the execution role.
    """
    partition = cdk.Stack.of(scope).partition
    requests = f"arn:{partition}:s3:::{queue.input.bucket}/{queue.input.key}*"
    # A prefix for both is named once.
    answers = list(
        dict.fromkeys(f"arn:{partition}:s3:::{p.bucket}/{p.key}*" for p in queue.written)
    )
    return ModeRights(
        scope,
        "AsyncInference",
        role=role,
        statements=[
            allow("ReadRequests", ["s3:GetObject"], requests),
            allow("WriteAnswers", ["s3:AbortMultipartUpload", "s3:PutObject"], *answers),
            *_rights_to_tell(queue),
            *_rights_to_keys(queue),
        ],
        reasons={
            requests: "Callers name the objects of their requests.",
            **dict.fromkeys(answers, "SageMaker names the objects of answers and failures."),
        },
    )


def _rights_to_tell(queue: AsyncPlan) -> Iterator[iam.PolicyStatement]:
    if queue.topic_arns:
        yield allow("TellTopics", ["sns:Publish"], *queue.topic_arns)


def _rights_to_keys(queue: AsyncPlan) -> Iterator[iam.PolicyStatement]:
    if queue.input_key_arn is not None:
        yield allow("DecryptRequests", ["kms:Decrypt"], queue.input_key_arn)
    both = ["kms:Decrypt", "kms:GenerateDataKey"]
    if queue.output_key_arn is not None:
        yield allow("EncryptAnswers", both, queue.output_key_arn)
    if queue.topic_key_arn is not None:
        yield allow("EncryptNotices", both, queue.topic_key_arn)
