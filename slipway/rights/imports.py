"""The least rights that `slipway import --endpoint` needs for one endpoint, as a policy of IAM."""

from typing import Any

from slipway.config.environments import Environment
from slipway.planning.statements import allow, policy_document
from slipway.rights.statements import Place, via_s3


def import_policy(environment: Environment, endpoint: str) -> dict[str, Any]:
    """Returns the policy to read an endpoint with its model, its scaling and its alarms."""
    place = Place(environment)
    statements = [
        allow(
            "ReadEndpoint",
            ["sagemaker:DescribeEndpoint", "sagemaker:ListTags"],
            place.arn("sagemaker", f"endpoint/{endpoint}"),
        ),
        allow(
            "ReadConfigsAndModels",
            ["sagemaker:DescribeEndpointConfig", "sagemaker:DescribeModel"],
            # Their names are known only after the endpoint was read.
            place.arn("sagemaker", "endpoint-config/*"),
            place.arn("sagemaker", "model/*"),
        ),
        allow(
            "ReadComponent",
            ["sagemaker:DescribeInferenceComponent"],
            place.arn("sagemaker", "inference-component/*"),
        ),
        allow(
            "ListWhatHasNoNarrowerResource",
            [
                "application-autoscaling:DescribeScalableTargets",
                "application-autoscaling:DescribeScalingPolicies",
                "application-autoscaling:DescribeScheduledActions",
                "cloudwatch:DescribeAlarms",
                "logs:DescribeLogGroups",
                # For the hint where there is no endpoint of the name.
                "sagemaker:ListEndpoints",
                # For an endpoint whose variants have no model.
                "sagemaker:ListInferenceComponents",
            ],
            "*",
        ),
        # Settings of the server in the model data, config.json, and headers of safetensors files.
        allow(
            "ReadModelData",
            ["s3:GetObject", "s3:ListBucket"],
            f"arn:{place.partition}:s3:::*",
        ),
        # Every key of the account and region, but only for what S3 gives out.
        allow("DecryptModelData", ["kms:Decrypt"], place.arn("kms", "key/*"), **via_s3(place)),
    ]
    return policy_document(statements)
