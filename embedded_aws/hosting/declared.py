"""Resources that only store their create request: models and endpoint configurations."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from embedded_aws.api import Caller
from embedded_aws.hosting.records import Records, now, page
from embedded_aws.hosting.tags import Tags


@dataclass(frozen=True)
class Declared:
    """One such resource.

    Attributes:
        name: unique in its region.
        arn: has the name in lower case.
        created: in UTC.
        parameters: the create request without its tags.
    """

    name: str
    arn: str
    created: datetime
    parameters: Mapping[str, Any]


class DeclaredResources:
    """The operations on the resources of one kind; a subclass checks the create request.

    Args:
        kind: the kind in the API's names, for example `EndpointConfig`.
        noun: the kind in error messages, for example `endpoint configuration`.
        arn_type: the kind in ARNs, for example `endpoint-config`.
        tags: keeps the tags.
    """

    def __init__(self, kind: str, *, noun: str, arn_type: str, tags: Tags) -> None:
        self._kind = kind
        self._name, self._arn = f"{kind}Name", f"{kind}Arn"
        self._tags = tags
        self.records: Records[Declared] = Records(noun=noun, arn_type=arn_type)

    def store(self, caller: Caller, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Adds a resource; returns the answer of its create operation."""
        name = parameters[self._name]
        arn = self.records.arn(caller, name)
        kept = {key: value for key, value in parameters.items() if key != "Tags"}
        self.records.add(caller, Declared(name, arn, now(), kept))
        self._tags.create(arn, parameters.get("Tags", []))
        return {self._arn: arn}

    def describe(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        """Handles DescribeModel and DescribeEndpointConfig."""
        record = self.records.get(caller, parameters[self._name])
        return {**record.parameters, self._arn: record.arn, "CreationTime": record.created}

    def list(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        """Handles ListModels and ListEndpointConfigs."""
        records, token = page(self.records.all(caller.region), parameters, sort_keys={})
        summaries = [
            {self._name: record.name, self._arn: record.arn, "CreationTime": record.created}
            for record in records
        ]
        return {f"{self._kind}s": summaries, "NextToken": token}

    def delete(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        """Handles DeleteModel and DeleteEndpointConfig.

        Endpoints that use the resource keep running, as in SageMaker.
        """
        record = self.records.get(caller, parameters[self._name])
        self.records.remove(caller.region, record.name)
        self._tags.remove(record.arn)
        return {}
