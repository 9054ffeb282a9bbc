"""The rules of endpoint configurations whose variants host inference components.

Such a variant names no model. Its endpoint starts empty, and components bring their models. Where a
message has no source beside it, AWS's words are not public and they are Slipway's.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from slipway.embedded_aws.api import Caller, ValidationError
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.resources.models import check_network
from slipway.embedded_aws.hosting.resources.refusals import refuse
from slipway.embedded_aws.iam.trust import require_role
from slipway.embedded_aws.reported_refusals import ReportedRefusal

_OF_ENDPOINT = {
    "AsyncInferenceConfig": "asynchronous endpoints with inference components",
    "DataCaptureConfig": "data capture of inference components",
    "ShadowProductionVariants": "shadow variants with inference components",
}
# Of a component these are in its StartupParameters.
_OF_CONTAINER = {
    "ModelDataDownloadTimeoutInSeconds": "a download time-out of a variant without a model",
    "ContainerStartupHealthCheckTimeoutInSeconds": "a start time-out of a variant without a model",
}
_OF_MODELS = ("ExecutionRoleArn", "VpcConfig", "EnableNetworkIsolation")


def hosts_components(variant: Mapping[str, Any]) -> bool:
    return not variant.get("ModelName")


def check_hosting(
    clients: LoopbackClients,
    caller: Caller,
    parameters: Mapping[str, Any],
    refused: Collection[ReportedRefusal],
) -> None:
    variants = parameters["ProductionVariants"]
    empty = [variant for variant in variants if hosts_components(variant)]
    if not empty:
        _check_models(parameters, variants)
        return
    if len(empty) < len(variants):
        named = next(variant for variant in variants if not hosts_components(variant))
        raise ValidationError(
            f'Variant "{empty[0]["VariantName"]}" names no model and variant '
            f'"{named["VariantName"]}" names one. An endpoint hosts either models or inference '
            "components."
        )
    refuse(parameters, _OF_ENDPOINT)
    role = parameters.get("ExecutionRoleArn")
    if role is None:
        # The issue that `ReportedRefusal` names says so, and does not quote the words.
        raise ValidationError(
            "ExecutionRoleArn is required for an endpoint configuration whose variants host "
            "inference components."
        )
    require_role(clients, caller, role)
    if network := parameters.get("VpcConfig"):
        check_network(clients.client("ec2", caller.region), network)
    for variant in empty:
        refuse(variant, _OF_CONTAINER)
        _check_scaling(variant, refused)


def _check_models(parameters: Mapping[str, Any], variants: Sequence[Mapping[str, Any]]) -> None:
    for variant in variants:
        if variant.get("ManagedInstanceScaling", {}).get("Status") == "ENABLED":
            # https://github.com/hashicorp/terraform-provider-aws/pull/45926, read 2026-11-24.
            raise ValidationError(
                "ManagedInstanceScaling is only supported for inference component endpoints."
            )
    refuse(
        parameters,
        {name: f"{name} of a configuration whose variants name models" for name in _OF_MODELS},
    )


def _check_scaling(variant: Mapping[str, Any], refused: Collection[ReportedRefusal]) -> None:
    scaling = variant.get("ManagedInstanceScaling", {})
    if scaling.get("Status") != "ENABLED":
        return
    low, high = scaling.get("MinInstanceCount"), scaling.get("MaxInstanceCount")
    if low == 0 and ReportedRefusal.MIN_INSTANCE_COUNT_0 in refused:
        raise ValidationError(ReportedRefusal.MIN_INSTANCE_COUNT_0.message)
    initial = variant.get("InitialInstanceCount")
    name = variant["VariantName"]
    if low is not None and high is not None and low > high:
        raise ValidationError(
            f'MinInstanceCount {low} of variant "{name}" is greater than MaxInstanceCount {high}.'
        )
    if high is not None and initial is not None and initial > high:
        raise ValidationError(
            f'InitialInstanceCount {initial} of variant "{name}" is greater than MaxInstanceCount '
            f"{high}."
        )
