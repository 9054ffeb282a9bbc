"""The capture of requests and answers: SageMaker's settings."""

from aws_cdk import aws_sagemaker as sagemaker

from slipway.config.sections.recording import DataCapture
from slipway.planning.capture import CapturePlace

_MODES = {"input": "Input", "output": "Output"}


def capture_config(
    capture: DataCapture, place: CapturePlace, key_arn: str | None
) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty:
    """Returns the settings of an endpoint configuration.

    Bodies of other content types than these two are captured in Base64.

    Args:
        capture: the config's section.
        place: where it lies.
        key_arn: the key that encrypts what is captured; None for the bucket's own encryption.
    """
    return sagemaker.CfnEndpointConfig.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=capture.sampling_percent,
        destination_s3_uri=place.uri,
        kms_key_id=key_arn,
        capture_options=[
            sagemaker.CfnEndpointConfig.CaptureOptionProperty(capture_mode=_MODES[each])
            for each in capture.capture
        ],
        capture_content_type_header=(
            sagemaker.CfnEndpointConfig.CaptureContentTypeHeaderProperty(
                json_content_types=["application/json"], csv_content_types=["text/csv"]
            )
        ),
    )
