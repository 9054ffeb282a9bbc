"""Resource types without any effect."""

from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    Physical,
    Properties,
    ResourceContext,
    ResourceHandler,
)


class InertHandler(ResourceHandler):
    """A resource without any effect.

    Args:
        type_name: for example `AWS::CDK::Metadata`.
        properties: properties that a template may set.
    """

    def __init__(self, type_name: str, properties: frozenset[str]) -> None:
        self.type_name = type_name
        self.properties = properties

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Returns a generated name."""
        return Physical(context.physical_name(maximum=128), {})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Does nothing."""
        return {}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Does nothing."""
