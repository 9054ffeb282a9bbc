"""The resource types of the embedded AWS, and the handler of each."""

import fnmatch
import threading
from collections.abc import Collection, Mapping

from slipway.embedded_aws.cloudformation.resources import (
    codebuild,
    custom_resources,
    ecr,
    iam,
    kms,
    monitoring,
    network,
    s3,
    sagemaker,
    scaling,
    sns,
    ssm,
)
from slipway.embedded_aws.cloudformation.resources.base import (
    Physical,
    Properties,
    ResourceContext,
    ResourceHandler,
)
from slipway.embedded_aws.cloudformation.resources.lambda_runtime import LambdaRuntime
from slipway.embedded_aws.cloudformation.template import Template
from slipway.embedded_aws.errors import LocalAwsError
from slipway.facts.resource_types import provider_schemas

# Slipway's own custom resources, whose functions can run here.
CUSTOM_TYPES = (
    "Custom::SlipwayFoundation",
    "Custom::SlipwayRemotePublishing",
    "Custom::SlipwayScaling",
)


class InertHandler(ResourceHandler):
    """A resource without any effect."""

    def __init__(self, type_name: str, properties: frozenset[str] = frozenset()) -> None:
        self.type_name = type_name
        self.properties = properties

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        return Physical(context.physical_name(maximum=128))

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        pass

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        pass


class RecordedHandler(InertHandler):
    """A resource of a type that the embedded AWS does not know, recorded on request.

    It takes every property and has every attribute, whose values are made up.
    """

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name = context.physical_name(maximum=128)
        service = self.type_name.split("::")[1].lower()
        return Physical(name, MadeUpAttributes(name, context.arn(service, name)))

    def has_attribute(self, name: str) -> bool:
        return True


class MadeUpAttributes(dict[str, str]):
    """Attributes of a recorded resource: an ARN for a name that ends so, else a text."""

    def __init__(self, physical_id: str, arn: str) -> None:
        super().__init__()
        self._physical_id, self._arn = physical_id, arn

    def __missing__(self, name: str) -> str:
        return self._arn if name.endswith("Arn") else f"{self._physical_id}-{name}"


def own_handlers(runtime: LambdaRuntime | None = None) -> list[ResourceHandler]:
    """Returns a handler for each of AWS's types that this package implements."""
    return [
        codebuild.ProjectHandler(),
        custom_resources.FunctionHandler(runtime or LambdaRuntime()),
        ecr.RepositoryHandler(),
        iam.InlinePolicyHandler(),
        iam.ManagedPolicyHandler(),
        iam.RoleHandler(),
        kms.AliasHandler(),
        kms.KeyHandler(),
        monitoring.AlarmHandler(),
        monitoring.DashboardHandler(),
        monitoring.LogGroupHandler(),
        network.SecurityGroupHandler(),
        network.VpcEndpointHandler(),
        s3.BucketHandler(),
        s3.BucketPolicyHandler(),
        sagemaker.EndpointHandler(),
        sagemaker.InferenceComponentHandler(),
        sagemaker.StoredHandler("EndpointConfig"),
        sagemaker.StoredHandler("Model"),
        scaling.ScalableTargetHandler(),
        scaling.ScalingPolicyHandler(),
        sns.SubscriptionHandler(),
        sns.TopicHandler(),
        sns.TopicPolicyHandler(),
        ssm.ParameterHandler(),
        # CDK emits these types. A handle without a condition stands for "no resource" there.
        InertHandler("AWS::CDK::Metadata", frozenset({"Analytics", "Modules"})),
        InertHandler("AWS::CloudFormation::WaitConditionHandle"),
    ]


class ResourceRegistry:
    """The handlers of all types, with each type's facts from AWS's provider schemas.

    Args:
        recorded: patterns (fnmatch) of further types, whose resources are recorded without effect.

    Raises:
        LocalAwsError: a recorded type has a handler of Slipway's.
    """

    def __init__(self, recorded: Collection[str] = ()) -> None:
        runtime = LambdaRuntime()
        custom = (custom_resources.CustomResourceHandler(name, runtime) for name in CUSTOM_TYPES)
        handlers = (*own_handlers(runtime), *custom)
        self._recorded = recorded
        self._handlers = {handler.type_name: handler for handler in handlers}
        self._motos: Mapping[str, ResourceHandler] | None = None
        self._lock = threading.Lock()
        if known := sorted(self._handlers.keys() & set(recorded)):
            raise LocalAwsError(
                f"The embedded AWS makes resources of {', '.join(known)}: start it without "
                f"`{' '.join(f'--record {name}' for name in known)}`."
            )
        for type_name, schema in provider_schemas().items():
            handler = self._handlers[type_name]
            handler.required = frozenset(schema["required"])
            handler.create_only = frozenset(schema["create_only"])

    def unknown_types(self, template: Template) -> list[str]:
        """Returns the types of a template that are not emulated."""
        types = {item.type for item in template.resources.values()}
        return sorted(
            name for name in types if not self._is_recorded(name) and self._find(name) is None
        )

    def get(self, type_name: str) -> ResourceHandler:
        """Returns the handler of a type that is known to be emulated, or is recorded."""
        return self._find(type_name) or RecordedHandler(type_name)

    def _find(self, type_name: str) -> ResourceHandler | None:
        if type_name in self._handlers:
            return self._handlers[type_name]
        # The other types are recorded on request too: moto makes some of a service, and fails.
        if self._is_recorded(type_name):
            return None
        with self._lock:  # a handler knows what it made, so that a type has only one
            if self._motos is None:
                # Its import takes a second, and few stacks need one of its types.
                from slipway.embedded_aws.cloudformation.resources.moto_types import moto_handlers

                self._motos = {handler.type_name: handler for handler in moto_handlers()}
        return self._motos.get(type_name)

    def _is_recorded(self, type_name: str) -> bool:
        return any(fnmatch.fnmatchcase(type_name, pattern) for pattern in self._recorded)
