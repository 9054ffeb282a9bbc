"""Resources that only store their create request: models and endpoint configurations."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from embedded_aws.api import Caller
from embedded_aws.hosting.resources.records import Records, now


@dataclass(frozen=True)
class Declared:
    """One such resource.

    Attributes:
        kind: the kind in the API's names, for example `EndpointConfig`.
        parameters: the create request without its tags.
    """

    kind: str
    name: str
    arn: str
    created: datetime
    parameters: Mapping[str, Any]

    def describe(self) -> dict[str, Any]:
        """Returns the answer of DescribeModel or DescribeEndpointConfig."""
        return {**self.parameters, f"{self.kind}Arn": self.arn, "CreationTime": self.created}


class DeclaredResources(Records[Declared]):
    """The resources of one kind; a subclass checks the create request."""

    def store(self, caller: Caller, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Adds a resource; returns the answer of its create operation."""
        kept = {key: value for key, value in parameters.items() if key != "Tags"}
        name = parameters[f"{self.kind}Name"]
        declared = Declared(self.kind, name, self.arn(caller, name), now(), kept)
        self.add(caller, declared, parameters.get("Tags", ()))
        return {f"{self.kind}Arn": declared.arn}
