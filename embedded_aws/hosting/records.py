"""The memory of the control plane: named resources per region, and their lists."""

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from embedded_aws.api import ApiError, Caller

# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ListEndpoints.html
_DEFAULT_MAX_RESULTS = 10
VALIDATION = "ValidationException"


class Named(Protocol):
    """The properties that every resource has."""

    @property
    def name(self) -> str:
        """Returns the name that the caller gave it."""

    @property
    def created(self) -> datetime:
        """Returns the time of its creation, in UTC."""


R = TypeVar("R", bound=Named)


def now() -> datetime:
    """Returns the current time in UTC."""
    return datetime.now(UTC)


class Records(Generic[R]):
    """The resources of one kind.

    Args:
        noun: the kind in error messages, for example `endpoint configuration`.
        arn_type: the kind in ARNs, for example `endpoint-config`.
    """

    def __init__(self, *, noun: str, arn_type: str) -> None:
        self._noun = noun
        self._arn_type = arn_type
        self._records: dict[tuple[str, str], R] = {}
        self._lock = threading.Lock()

    def arn(self, caller: Caller, name: str) -> str:
        """Returns the ARN for a name; SageMaker writes names in lower case there."""
        return (
            f"arn:aws:sagemaker:{caller.region}:{caller.account_id}:{self._arn_type}/{name.lower()}"
        )

    def add(self, caller: Caller, record: R) -> None:
        """Adds a resource.

        Raises:
            ApiError: the name is taken.
        """
        with self._lock:
            if (caller.region, record.name) in self._records:
                arn = self.arn(caller, record.name)
                raise ApiError(VALIDATION, f'Cannot create already existing {self._noun} "{arn}".')
            self._records[caller.region, record.name] = record

    def get(self, caller: Caller, name: str) -> R:
        """Returns a resource.

        Raises:
            ApiError: there is no resource of this name.
        """
        record = self.find(caller.region, name)
        if record is None:
            raise ApiError(VALIDATION, f'Could not find {self._noun} "{self.arn(caller, name)}".')
        return record

    def find(self, region: str, name: str) -> R | None:
        """Returns a resource, or None."""
        with self._lock:
            return self._records.get((region, name))

    def remove(self, region: str, name: str) -> None:
        """Removes a resource."""
        with self._lock:
            self._records.pop((region, name), None)

    def all(self, region: str | None = None) -> list[R]:
        """Returns every resource of one region or of all, oldest first."""
        with self._lock:
            return [
                record
                for (owner, _), record in self._records.items()
                if region is None or owner == region
            ]


def page(
    records: list[R],
    parameters: Mapping[str, Any],
    *,
    sort_keys: Mapping[str, Callable[[R], Any]],
    modified: Callable[[R], datetime] | None = None,
) -> tuple[list[R], str | None]:
    """Filters, sorts and cuts a List operation's answer.

    Args:
        records: every resource of the region.
        parameters: the operation's input.
        sort_keys: values of SortBy in addition to Name and CreationTime.
        modified: returns the last change of a record, for the LastModifiedTime filters.

    Returns:
        The page and the token of the next page, or None after the last.
    """
    times: list[tuple[str, Callable[[R], datetime]]] = [("CreationTime", lambda r: r.created)]
    if modified is not None:
        times.append(("LastModifiedTime", modified))
    for field, time_of in times:
        if after := _utc(parameters.get(f"{field}After")):
            records = [record for record in records if time_of(record) > after]
        if before := _utc(parameters.get(f"{field}Before")):
            records = [record for record in records if time_of(record) < before]
    part = parameters.get("NameContains", "").lower()
    records = [record for record in records if part in record.name.lower()]
    keys: dict[str, Callable[[R], Any]] = {
        "Name": lambda record: record.name,
        "CreationTime": lambda record: record.created,
        **sort_keys,
    }
    records = sorted(
        records,
        key=keys[parameters.get("SortBy", "CreationTime")],
        reverse=parameters.get("SortOrder", "Descending") == "Descending",
    )
    token = parameters.get("NextToken", "0")
    if not token.isdecimal():
        raise ApiError(VALIDATION, "Invalid NextToken.")
    start = int(token)
    end = start + parameters.get("MaxResults", _DEFAULT_MAX_RESULTS)
    return records[start:end], str(end) if end < len(records) else None


def _utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
