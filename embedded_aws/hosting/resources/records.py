"""The memory of the control plane: named resources per region, their tags, and their lists.

Models and endpoint configurations only store their create request.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from slipway.embedded_aws.api import Caller, ValidationError
from slipway.embedded_aws.hosting.resources.tags import Tags

# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ListEndpoints.html
_DEFAULT_MAX_RESULTS = 10


class Record(Protocol):
    @property
    def name(self) -> str:
        """Returns the name that the caller gave it."""

    @property
    def arn(self) -> str:
        """Returns its ARN, which has the name in lower case."""

    def describe(self) -> Mapping[str, Any]:
        """Returns the answer of its Describe operation."""


R = TypeVar("R", bound=Record)


def now() -> datetime:
    return datetime.now(UTC)


class Records(Generic[R]):
    """The resources of one kind.

    Args:
        kind: in the API's names, for example `EndpointConfig`.
        noun: in error messages, for example `endpoint configuration`.
        arn_type: in ARNs, for example `endpoint-config`.
        listed_as: the member of the answer of the List operation; None for the kind's plural.
    """

    def __init__(
        self, kind: str, *, noun: str, arn_type: str, tags: Tags, listed_as: str | None = None
    ) -> None:
        self.kind = kind
        self._noun = noun
        self._arn_type = arn_type
        self._tags = tags
        self._listed_as = listed_as or f"{kind}s"
        self._records: dict[tuple[str, str], R] = {}
        self._lock = threading.Lock()

    def arn(self, caller: Caller, name: str) -> str:
        """Returns the ARN for a name; SageMaker writes names in lower case there."""
        return (
            f"arn:aws:sagemaker:{caller.region}:{caller.account_id}:{self._arn_type}/{name.lower()}"
        )

    def add(self, caller: Caller, record: R, tags: Iterable[Mapping[str, str]] = ()) -> None:
        """Adds a resource with the tags of its create request, unless the name is taken."""
        with self._lock:
            if (caller.region, record.name) in self._records:
                raise ValidationError(
                    f'Cannot create already existing {self._noun} "{record.arn}".'
                )
            self._records[caller.region, record.name] = record
        self._tags.create(record.arn, tags)

    def get(self, caller: Caller, name: str) -> R:
        """Returns a resource; raises `ValidationError` if there is none of this name."""
        record = self.find(caller.region, name)
        if record is None:
            raise ValidationError(f'Could not find {self._noun} "{self.arn(caller, name)}".')
        return record

    def find(self, region: str, name: str) -> R | None:
        with self._lock:
            return self._records.get((region, name))

    def remove(self, region: str, record: R) -> None:
        with self._lock:
            self._records.pop((region, record.name), None)
        self._tags.remove(record.arn)

    def all(self, region: str | None = None) -> Sequence[R]:
        """Returns every resource of one region or of all, oldest first."""
        with self._lock:
            return [
                record
                for (owner, _), record in self._records.items()
                if region is None or owner == region
            ]

    def describe(self, caller: Caller, parameters: dict[str, Any]) -> Mapping[str, Any]:
        return self.get(caller, parameters[f"{self.kind}Name"]).describe()

    def delete(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        """Endpoints that use the resource keep running, as in SageMaker."""
        self.remove(caller.region, self.get(caller, parameters[f"{self.kind}Name"]))
        return {}

    def list(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        """The API's serializer writes only the members that its model has for a summary."""
        members = {"Name": f"{self.kind}Name", "Status": f"{self.kind}Status"}
        found = [each.describe() for each in self.all(caller.region)]
        for name in ("Status", "EndpointName", "VariantName"):
            if wanted := parameters.get(f"{name}Equals"):
                found = [each for each in found if each[members.get(name, name)] == wanted]
        for name in ("CreationTime", "LastModifiedTime"):
            if after := parameters.get(f"{name}After"):
                found = [each for each in found if each[name] > _utc(after)]
            if before := parameters.get(f"{name}Before"):
                found = [each for each in found if each[name] < _utc(before)]
        part = parameters.get("NameContains", "").lower()
        found = [each for each in found if part in each[members["Name"]].lower()]
        key = parameters.get("SortBy", "CreationTime")
        is_descending = parameters.get("SortOrder", "Descending") == "Descending"
        found.sort(key=lambda each: each[members.get(key, key)], reverse=is_descending)
        token = parameters.get("NextToken", "0")
        if not token.isdecimal():
            raise ValidationError("Invalid NextToken.")
        start = int(token)
        end = start + parameters.get("MaxResults", _DEFAULT_MAX_RESULTS)
        token = str(end) if end < len(found) else None
        return {self._listed_as: found[start:end], "NextToken": token}


@dataclass(frozen=True)
class Declared:
    """One such resource: its kind in the API's names, and the create request without its tags."""

    kind: str
    name: str
    arn: str
    created: datetime
    parameters: Mapping[str, Any]

    def describe(self) -> dict[str, Any]:
        return {**self.parameters, f"{self.kind}Arn": self.arn, "CreationTime": self.created}


class DeclaredResources(Records[Declared]):
    def store(self, caller: Caller, parameters: Mapping[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in parameters.items() if key != "Tags"}
        name = parameters[f"{self.kind}Name"]
        declared = Declared(self.kind, name, self.arn(caller, name), now(), kept)
        self.add(caller, declared, parameters.get("Tags", ()))
        return {f"{self.kind}Arn": declared.arn}


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
