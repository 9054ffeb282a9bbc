"""Scalable targets: the changes that a registered variant forbids, and how deletion removes them.

The rules are from AWS's guide (read 2026-11-22). "If the update would change the instance type for
any model that is a target for auto scaling, the update fails" (endpoint-scaling-update.html).
DeleteEndpoint deregisters the variants (endpoint-delete-with-scaling.html). Neither the guide nor a
public page that was read quotes a message: the wording of the refusal is unconfirmed.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from slipway.embedded_aws.api import ValidationError
from slipway.embedded_aws.hosting.resources.endpoint_configs import instance_types

_NAMESPACE = "sagemaker"
_DIMENSION = "sagemaker:variant:DesiredInstanceCount"


def check_update(
    scaling: Any,
    endpoint_name: str,
    live: Mapping[str, Mapping[str, Any]],
    wanted: Mapping[str, Mapping[str, Any]],
) -> None:
    """Refuses an update that removes a registered variant or changes its instance types.

    `live` are the declared production variants in service, by name, and `wanted` those of the
    update. The message of the `ValidationError` names every such variant.
    """
    changed = [
        name
        for name, declared in live.items()
        if name not in wanted or instance_types(declared) != instance_types(wanted[name])
    ]
    registered = list(_registered(scaling, endpoint_name, changed))
    if registered:
        raise ValidationError(
            f'The variant(s) "{json.dumps(registered)}" must be deregistered as scalable '
            "targets with AWS Auto Scaling before they can be removed or have their instance "
            "type updated."
        )


def deregister(scaling: Any, endpoint_name: str, names: Iterable[str]) -> None:
    for resource in _registered(scaling, endpoint_name, names).values():
        scaling.deregister_scalable_target(
            ServiceNamespace=_NAMESPACE, ResourceId=resource, ScalableDimension=_DIMENSION
        )


def _registered(scaling: Any, endpoint_name: str, names: Iterable[str]) -> dict[str, str]:
    resources = {name: f"endpoint/{endpoint_name}/variant/{name}" for name in names}
    if not resources:
        return {}  # an empty list would mean every target of the account
    answer = scaling.describe_scalable_targets(
        ServiceNamespace=_NAMESPACE,
        ResourceIds=list(resources.values()),
        ScalableDimension=_DIMENSION,
    )
    found = {target["ResourceId"] for target in answer["ScalableTargets"]}
    return {name: resource for name, resource in resources.items() if resource in found}
