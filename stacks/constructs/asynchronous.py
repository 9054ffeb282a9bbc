"""The queue of an asynchronous endpoint: SageMaker's settings."""

from aws_cdk import aws_sagemaker as sagemaker

from slipway.config.sections.endpoint import AsyncInference
from slipway.planning.asynchronous import topic_types


def async_config(
    queue: AsyncInference,
) -> sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty:
    """Returns the settings of an endpoint configuration."""
    notification = None
    if queue.topic_arns:
        notification = sagemaker.CfnEndpointConfig.AsyncInferenceNotificationConfigProperty(
            success_topic=queue.success_topic_arn,
            error_topic=queue.error_topic_arn,
            include_inference_response_in=topic_types(queue.include_response_in) or None,
        )
    failure = queue.failure_output
    return sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty(
        client_config=sagemaker.CfnEndpointConfig.AsyncInferenceClientConfigProperty(
            max_concurrent_invocations_per_instance=queue.max_concurrent_invocations_per_instance
        ),
        output_config=sagemaker.CfnEndpointConfig.AsyncInferenceOutputConfigProperty(
            kms_key_id=queue.output_key_arn,
            notification_config=notification,
            # SageMaker adds the final slash itself.
            s3_failure_path=None if failure is None else failure.rstrip("/"),
            s3_output_path=queue.output.rstrip("/"),
        ),
    )
