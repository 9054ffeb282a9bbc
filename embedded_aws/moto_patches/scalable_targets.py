"""Patches moto's scalable targets where they are laxer than Application Auto Scaling.

- DeregisterScalableTarget deletes the scaling policies and the scheduled actions of the target
  (API_DeregisterScalableTarget.html, read 2026-11-22). moto keeps them, so a target that is
  registered again would have its policies back.
- A target or a policy that does not exist is an ObjectNotFoundException (botocore's model of the
  API). moto answers ValidationException, which CloudFormation does not take for "gone already".
- PutScalingPolicy and PutScheduledAction need a registered target. moto keeps both without one.
- A scalable dimension may be any of the API's model. moto lacks the copies of components.
- PutScalingPolicy makes the two alarms of a target tracking policy of a variant. A policy that is
  put again keeps its ARN. moto makes alarms for other services only, and a new ARN each time.
- PutScheduledAction refuses a schedule or a time zone that there is not. moto keeps any text. AWS's
  words for it are not public. Times of start and end are refused, because nothing here reads them.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from moto.applicationautoscaling import models, responses
from moto.applicationautoscaling.exceptions import AWSValidationException
from moto.applicationautoscaling.models import (
    ApplicationAutoscalingBackend,
    FakeApplicationAutoscalingPolicy,
)
from moto.core.exceptions import JsonRESTError
from moto.core.utils import get_service_model

from slipway.embedded_aws.scaling.tracking_alarms import make_tracking_alarms
from slipway.facts.schedule_expressions import ScheduleError, parse_schedule

_MISSING = "ObjectNotFoundException"
_deregister = ApplicationAutoscalingBackend.deregister_scalable_target
_put_policy = ApplicationAutoscalingBackend.put_scaling_policy
_delete_policy = ApplicationAutoscalingBackend.delete_scaling_policy
_put_action = ApplicationAutoscalingBackend.put_scheduled_action


def patch() -> None:
    """Makes moto do so."""
    models.ScalableDimensionValueSet = responses.ScalableDimensionValueSet = _dimensions()
    ApplicationAutoscalingBackend.deregister_scalable_target = _deregistered
    ApplicationAutoscalingBackend.put_scaling_policy = _policy_put
    ApplicationAutoscalingBackend.delete_scaling_policy = _policy_deleted
    ApplicationAutoscalingBackend.put_scheduled_action = _action_put


def _dimensions() -> Any:
    """Returns every scalable dimension of the API's model, in the form of moto's own list."""
    shape = get_service_model("application-autoscaling").shape_for("ScalableDimension")
    return Enum("ScalableDimensionValueSet", {value: value for value in shape.enum})


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
    _require_target(backend, request)
    key = FakeApplicationAutoscalingPolicy.formulate_key(
        request["service_namespace"],
        request["resource_id"],
        request["scalable_dimension"],
        request["policy_name"],
    )
    before = backend.policies.get(key)
    policy = _put_policy(backend, **request)
    if before is not None:
        # The same policy: alarms name it by its ARN.
        before.delete_alarms(backend.account_id, backend.region_name)
        policy.policy_arn = before.policy_arn
    if policy.service_namespace == "sagemaker" and policy.policy_type == "TargetTrackingScaling":
        try:
            make_tracking_alarms(policy)
        except AWSValidationException:
            del backend.policies[key]
            raise
    return policy


def _action_put(backend: Any, **request: Any) -> None:
    _require_target(backend, request)
    if request["start_time"] is not None or request["end_time"] is not None:
        raise AWSValidationException(
            "The embedded AWS does not emulate StartTime and EndTime of scheduled actions."
        )
    if request["schedule"] is not None:
        try:
            parse_schedule(request["schedule"], request["timezone"] or "UTC")
        except ScheduleError as error:
            raise AWSValidationException(str(error)) from None
    _put_action(backend, **request)


def _require_target(backend: Any, request: Mapping[str, Any]) -> None:
    namespace, dimension = request["service_namespace"], request["scalable_dimension"]
    resource_id = request["resource_id"]
    if resource_id not in backend.targets.get(dimension, {}):
        raise JsonRESTError(
            _MISSING,
            f"No scalable target found for service namespace: {namespace}, resource ID: "
            f"{resource_id}, scalable dimension: {dimension}",
        )


def _policy_deleted(backend: Any, **request: Any) -> None:
    try:
        _delete_policy(backend, **request)
    except AWSValidationException as error:
        raise JsonRESTError(_MISSING, error.message) from None
