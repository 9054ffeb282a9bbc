"""The resource types of the embedded AWS."""

from slipway.embedded_aws.cloudformation.resources.base import ResourceHandler
from slipway.embedded_aws.cloudformation.resources.codebuild import ProjectHandler
from slipway.embedded_aws.cloudformation.resources.custom_resources import (
    CustomResourceHandler,
    FunctionHandler,
)
from slipway.embedded_aws.cloudformation.resources.ecr import RepositoryHandler
from slipway.embedded_aws.cloudformation.resources.iam import (
    InlinePolicyHandler,
    ManagedPolicyHandler,
    RoleHandler,
)
from slipway.embedded_aws.cloudformation.resources.inert import InertHandler
from slipway.embedded_aws.cloudformation.resources.inference_components import (
    InferenceComponentHandler,
)
from slipway.embedded_aws.cloudformation.resources.kms import AliasHandler, KeyHandler
from slipway.embedded_aws.cloudformation.resources.lambda_runtime import LambdaRuntime
from slipway.embedded_aws.cloudformation.resources.monitoring import (
    AlarmHandler,
    DashboardHandler,
    LogGroupHandler,
)
from slipway.embedded_aws.cloudformation.resources.network import (
    SecurityGroupHandler,
    VpcEndpointHandler,
)
from slipway.embedded_aws.cloudformation.resources.s3 import BucketHandler, BucketPolicyHandler
from slipway.embedded_aws.cloudformation.resources.sagemaker import EndpointHandler, stored_handlers
from slipway.embedded_aws.cloudformation.resources.scaling import (
    ScalableTargetHandler,
    ScalingPolicyHandler,
)
from slipway.embedded_aws.cloudformation.resources.sns import (
    SubscriptionHandler,
    TopicHandler,
    TopicPolicyHandler,
)
from slipway.embedded_aws.cloudformation.resources.ssm import ParameterHandler

# Slipway's own custom resources, whose functions can run here.
CUSTOM_TYPES = (
    "Custom::SlipwayFoundation",
    "Custom::SlipwayRemotePublishing",
    "Custom::SlipwayScaling",
)


def own_handlers(runtime: LambdaRuntime | None = None) -> list[ResourceHandler]:
    """Returns a handler for each of AWS's types that this package implements.

    Args:
        runtime: runs the functions; None creates a new one.
    """
    return [
        AlarmHandler(),
        AliasHandler(),
        BucketHandler(),
        BucketPolicyHandler(),
        DashboardHandler(),
        EndpointHandler(),
        FunctionHandler(runtime or LambdaRuntime()),
        InferenceComponentHandler(),
        InlinePolicyHandler(),
        KeyHandler(),
        LogGroupHandler(),
        ManagedPolicyHandler(),
        ParameterHandler(),
        ProjectHandler(),
        RepositoryHandler(),
        RoleHandler(),
        ScalableTargetHandler(),
        ScalingPolicyHandler(),
        SecurityGroupHandler(),
        SubscriptionHandler(),
        TopicHandler(),
        TopicPolicyHandler(),
        VpcEndpointHandler(),
        # CDK emits these types. A handle without a condition stands for "no resource" there.
        InertHandler("AWS::CDK::Metadata", frozenset({"Analytics", "Modules"})),
        InertHandler("AWS::CloudFormation::WaitConditionHandle", frozenset()),
        *stored_handlers(),
    ]


def resource_handlers() -> list[ResourceHandler]:
    """Returns this package's handlers, those of Slipway's custom resources among them."""
    runtime = LambdaRuntime()
    custom = [CustomResourceHandler(name, runtime) for name in CUSTOM_TYPES]
    return [*own_handlers(runtime), *custom]


def moto_handlers() -> list[ResourceHandler]:
    """Returns moto's handlers. Their import takes a second, and few stacks need one."""
    from slipway.embedded_aws.cloudformation.resources import moto_types

    return moto_types.moto_handlers()
