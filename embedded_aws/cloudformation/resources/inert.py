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


class RecordedHandler(InertHandler):
    """A resource of a type that the embedded AWS does not know, recorded on request.

    It takes every property and has every attribute, whose values are made up.
    """

    def __init__(self, type_name: str) -> None:
        super().__init__(type_name, frozenset())

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Returns a generated name."""
        name = context.physical_name(maximum=128)
        service = self.type_name.split("::")[1].lower()
        return Physical(name, MadeUpAttributes(name, context.arn(service, name)))

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes nothing."""
        return context.attributes

    def has_attribute(self, name: str) -> bool:
        """Returns True."""
        return True


class MadeUpAttributes(dict[str, str]):
    """Attributes of a recorded resource: an ARN for a name that ends so, else a text."""

    def __init__(self, physical_id: str, arn: str) -> None:
        super().__init__()
        self._physical_id, self._arn = physical_id, arn

    def __missing__(self, name: str) -> str:
        return self._arn if name.endswith("Arn") else f"{self._physical_id}-{name}"
