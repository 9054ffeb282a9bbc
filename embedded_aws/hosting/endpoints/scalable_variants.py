"""Scalable targets: the changes that a registered variant forbids, and how deletion removes them.

The rules are from AWS's guide (read 2026-11-22). "If the update would change the instance type for
any model that is a target for auto scaling, the update fails" (endpoint-scaling-update.html).
DeleteEndpoint deregisters the variants (endpoint-delete-with-scaling.html). Neither the guide nor a
public page that was read quotes a message: the wording of the refusal is unconfirmed.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from embedded_aws.api import ValidationError
from embedded_aws.clients import LoopbackClients
from embedded_aws.hosting.resources.endpoint_configs import instance_types

_NAMESPACE = "sagemaker"
_DIMENSION = "sagemaker:variant:DesiredInstanceCount"


class ScalableVariants:
    """The variants of one endpoint that are registered with Application Auto Scaling."""

    def __init__(self, clients: LoopbackClients, region: str, endpoint_name: str) -> None:
        self._client = clients.client("application-autoscaling", region)
        self._prefix = f"endpoint/{endpoint_name}/variant/"

    def check_update(
        self, live: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Refuses an update that removes a registered variant or changes its instance types.

        Raises:
            ValidationError: the message names every such variant.
        """
        changed = [
            name
            for name, declared in live.items()
            if name not in wanted or instance_types(declared) != instance_types(wanted[name])
        ]
        registered = self._registered(changed)
        if registered:
            raise ValidationError(
                f'The variant(s) "{json.dumps(registered)}" must be deregistered as scalable '
                "targets with AWS Auto Scaling before they can be removed or have their instance "
                "type updated.",
            )

    def deregister(self, names: Iterable[str]) -> None:
        """Deregisters the variants, as far as they are registered."""
        for name in self._registered(list(names)):
            self._client.deregister_scalable_target(
                ServiceNamespace=_NAMESPACE,
                ResourceId=self._prefix + name,
                ScalableDimension=_DIMENSION,
            )

    def _registered(self, names: list[str]) -> list[str]:
        if not names:
            return []  # an empty list would mean every target of the account
        answer = self._client.describe_scalable_targets(
            ServiceNamespace=_NAMESPACE,
            ResourceIds=[self._prefix + name for name in names],
            ScalableDimension=_DIMENSION,
        )
        found = {
            target["ResourceId"].removeprefix(self._prefix) for target in answer["ScalableTargets"]
        }
        return [name for name in names if name in found]
