"""Service Quotas for SageMaker's instances behind endpoints, and the refusal to pass them.

Every type has a quota that is larger than a laptop needs. RequestServiceQuotaIncrease sets another
one at once, a smaller one too, so that a user can try what happens in an account with little room.
"""

import functools
import threading
import zlib
from collections.abc import Mapping
from typing import Any

from moto.core.utils import get_service_model

from slipway.embedded_aws.api import Answer, ApiError, Caller, Operation, Parameters, ServiceApi
from slipway.embedded_aws.identity import ACCOUNT_ID

_SERVICE, _SERVICE_NAME = "sagemaker", "Amazon SageMaker"
_DEFAULT_INSTANCES = 1000
_NAME = "{instance_type} for endpoint usage"
_NOT_FOUND = "NoSuchResourceException"


class EndpointQuotas:
    """The quotas of one account, whose `api` is the WSGI application of Service Quotas."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._applied: dict[tuple[str, str], float] = {}
        operations: Mapping[str, Operation] = {
            "GetServiceQuota": self._get,
            "ListAWSDefaultServiceQuotas": self._list_defaults,
            "ListServiceQuotas": self._list_applied,
            "RequestServiceQuotaIncrease": self._request,
        }
        self.api = ServiceApi(
            "service-quotas", operations, validation_code="IllegalArgumentException"
        )

    def check(self, region: str, *, used: Mapping[str, int], wanted: Mapping[str, int]) -> None:
        """Raises ApiError, in SageMaker's words, if more instances than a quota would run."""
        for instance_type, delta in wanted.items():
            limit, running = self._value(region, instance_type), used.get(instance_type, 0)
            if running + delta > limit:
                raise ApiError(
                    "ResourceLimitExceeded",
                    f"The account-level service limit '{_name(instance_type)}' is {limit:g} "
                    f"Instances, with current utilization of {running} Instances and a request "
                    f"delta of {delta} Instances. Please use AWS Service Quotas to request an "
                    "increase for this quota. If AWS Service Quotas is not available, contact AWS "
                    "support to request an increase for this quota.",
                )

    def _value(self, region: str, instance_type: str) -> float:
        with self._lock:
            return self._applied.get((region, instance_type), _DEFAULT_INSTANCES)

    def _get(self, caller: Caller, parameters: Parameters) -> Answer:
        instance_type = _instance_type(parameters)
        value = self._value(caller.region, instance_type)
        return {"Quota": _described(caller, instance_type, value)}

    def _list_applied(self, caller: Caller, parameters: Parameters) -> Answer:
        _require_sagemaker(parameters)
        with self._lock:
            applied = dict(self._applied)
        return {
            "Quotas": [
                _described(caller, instance_type, value)
                for (region, instance_type), value in sorted(applied.items())
                if region == caller.region
            ]
        }

    def _list_defaults(self, caller: Caller, parameters: Parameters) -> Answer:
        _require_sagemaker(parameters)
        return {
            "Quotas": [
                _described(caller, instance_type, _DEFAULT_INSTANCES)
                for instance_type in _instance_types()
            ]
        }

    def _request(self, caller: Caller, parameters: Parameters) -> Answer:
        instance_type = _instance_type(parameters)
        with self._lock:
            self._applied[caller.region, instance_type] = parameters["DesiredValue"]
        # The serializer leaves out what a requested quota has not.
        quota = _described(caller, instance_type, parameters["DesiredValue"])
        requested = quota | {"DesiredValue": quota["Value"], "Status": "APPROVED"}
        return {"RequestedQuota": requested}


@functools.cache
def _instance_types() -> tuple[str, ...]:
    shape = get_service_model("sagemaker").shape_for("ProductionVariantInstanceType")
    return tuple(shape.enum)


def _name(instance_type: str) -> str:
    return _NAME.format(instance_type=instance_type)


def _code(instance_type: str) -> str:
    # In the form of AWS's codes, whose values are not public as a list.
    return f"L-{zlib.crc32(instance_type.encode()):08X}"


def _described(caller: Caller, instance_type: str, value: float) -> dict[str, Any]:
    code = _code(instance_type)
    return {
        "ServiceCode": _SERVICE,
        "ServiceName": _SERVICE_NAME,
        "QuotaArn": f"arn:aws:servicequotas:{caller.region}:{ACCOUNT_ID}:{_SERVICE}/{code}",
        "QuotaCode": code,
        "QuotaName": _name(instance_type),
        "Value": value,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }


def _instance_type(parameters: dict[str, Any]) -> str:
    _require_sagemaker(parameters)
    for instance_type in _instance_types():
        if _code(instance_type) == parameters["QuotaCode"]:
            return instance_type
    raise ApiError(_NOT_FOUND, "The request failed because the specified quota does not exist.")


def _require_sagemaker(parameters: dict[str, Any]) -> None:
    if parameters["ServiceCode"] != _SERVICE:
        raise ApiError(
            _NOT_FOUND,
            "The embedded AWS has the quotas of sagemaker for instances behind endpoints alone.",
        )
