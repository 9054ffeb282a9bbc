"""Tags on models, endpoint configurations and endpoints."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from slipway.embedded_aws.api import Caller, ValidationError

_MAX_TAGS = 50  # limit of one resource, docs: SageMaker quotas


class Tags:
    """Tags by ARN. A resource has an entry, possibly empty, from its creation to its deletion."""

    def __init__(self) -> None:
        self._tags: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def create(self, arn: str, tags: Iterable[Mapping[str, str]]) -> None:
        with self._lock:
            self._tags[arn] = {tag["Key"]: tag["Value"] for tag in tags}

    def remove(self, arn: str) -> None:
        with self._lock:
            self._tags.pop(arn, None)

    def add_tags(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            tags = self._of(caller, parameters)
            merged = tags | {tag["Key"]: tag["Value"] for tag in parameters["Tags"]}
            if len(merged) > _MAX_TAGS:
                raise ValidationError(f"The number of tags exceeds the limit of {_MAX_TAGS}.")
            tags.update(merged)
            return {"Tags": _listed(merged)}

    def list_tags(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        """Handles ListTags; all tags fit into one page."""
        with self._lock:
            return {"Tags": _listed(self._of(caller, parameters))}

    def delete_tags(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            tags = self._of(caller, parameters)
            for key in parameters["TagKeys"]:
                tags.pop(key, None)
            return {}

    def _of(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, str]:
        arn = parameters["ResourceArn"].lower()
        # Another region's resources are unknown here.
        if arn not in self._tags or arn.split(":")[3] != caller.region:
            raise ValidationError(f'Could not find resource "{parameters["ResourceArn"]}".')
        return self._tags[arn]


def _listed(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
