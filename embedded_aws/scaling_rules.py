"""Tightens moto's scalable targets where they are laxer than Application Auto Scaling.

- DeregisterScalableTarget deletes the scaling policies and the scheduled actions of the target
  (API_DeregisterScalableTarget.html, read 2026-11-22). moto keeps them, so a target that is
  registered again would have its policies back.
- A target or a policy that does not exist is an ObjectNotFoundException (botocore's model of the
  API). moto answers ValidationException, which CloudFormation does not take for "gone already".
- PutScalingPolicy needs a registered target. moto keeps a policy without one.
"""

from typing import Any

from moto.applicationautoscaling.exceptions import AWSValidationException
from moto.applicationautoscaling.models import ApplicationAutoscalingBackend
from moto.core.exceptions import JsonRESTError

_MISSING = "ObjectNotFoundException"
_deregister = ApplicationAutoscalingBackend.deregister_scalable_target
_put_policy = ApplicationAutoscalingBackend.put_scaling_policy
_delete_policy = ApplicationAutoscalingBackend.delete_scaling_policy


def follow_scaling_rules() -> None:
    """Makes moto follow these rules, in the whole process; further calls do nothing."""
    ApplicationAutoscalingBackend.deregister_scalable_target = _deregistered
    ApplicationAutoscalingBackend.put_scaling_policy = _policy_put
    ApplicationAutoscalingBackend.delete_scaling_policy = _policy_deleted


def _deregistered(backend: Any, namespace: str, r_id: str, dimension: str) -> None:
    try:
        _deregister(backend, namespace, r_id, dimension)
    except AWSValidationException as error:
        raise JsonRESTError(_MISSING, error.message) from None
    policies = [
        policy
        for policy in backend.policies.values()
        if (policy.service_namespace, policy.resource_id, policy.scalable_dimension)
        == (namespace, r_id, dimension)
    ]
    for policy in policies:
        _delete_policy(backend, policy.policy_name, namespace, r_id, dimension)
    backend.scheduled_actions = [
        action
        for action in backend.scheduled_actions
        if (action.service_namespace, action.resource_id, action.scalable_dimension)
        != (namespace, r_id, dimension)
    ]


def _policy_put(backend: Any, **request: Any) -> Any:
    namespace, dimension = request["service_namespace"], request["scalable_dimension"]
    resource_id = request["resource_id"]
    if resource_id not in backend.targets.get(dimension, {}):
        raise JsonRESTError(
            _MISSING,
            f"No scalable target found for service namespace: {namespace}, resource ID: "
            f"{resource_id}, scalable dimension: {dimension}",
        )
    return _put_policy(backend, **request)


def _policy_deleted(backend: Any, **request: Any) -> None:
    try:
        _delete_policy(backend, **request)
    except AWSValidationException as error:
        raise JsonRESTError(_MISSING, error.message) from None
