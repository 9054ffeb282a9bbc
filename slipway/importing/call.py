"""Reads the keyword arguments of a notebook's call, which the notebook wrote as JSON.

The call makes a `Model`, a `HuggingFaceModel` or a `ModelBuilder` of the SageMaker Python SDK, and
deploys it. Nothing is run: the notebook's objects are only in the file if JSON has them.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.importing.draft import NO_SECRETS, SLIPWAYS_ROLE, Setting, is_secret
from slipway.json_text import parse_json

_LARGEST_BYTES = 1_000_000
_GROUPS = ("model", "deploy")
_ENVIRONMENT = ("env", "env_vars")
# Arguments of the endpoint that a field of the config says, with their own types.
_NUMBERS: Mapping[str, str] = {
    "initial_instance_count": "instance_count",
    "volume_size": "volume_size_gb",
    "model_data_download_timeout": "model_data_download_timeout_seconds",
    "container_startup_health_check_timeout": "container_startup_health_check_timeout_seconds",
}
# Arguments without an effect on what is deployed.
_CLIENTS = frozenset(
    {"accept_eula", "container_log_level", "content_type", "deserializer", "predictor_cls"}
    | {"sagemaker_session", "schema_builder", "serializer", "wait", "logs", "mode", "log_level"}
)
_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("role", "role_arn", "execution_role_arn"), SLIPWAYS_ROLE),
    "name": "Slipway names the model.",
    "endpoint_name": "the endpoint is called NAME-ENVIRONMENT. Run it beside the old one, and "
    "change the clients over.",
    "data_capture_config": "see `endpoint.data_capture` in the reference.",
    "async_inference_config": "see `endpoint.async_inference` in the reference.",
    "serverless_inference_config": "see `endpoint.serverless` in the reference.",
    "resources": "Slipway deploys to an endpoint of the model's own, without inference components.",
    "managed_instance_scaling": "see `autoscaling` in the reference.",
}
_ROUTING: Mapping[str, str] = {"LEAST_OUTSTANDING_REQUESTS": "least_outstanding_requests",
                               "RANDOM": "random"}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """What the arguments say.

    Args:
        image_uri: address of the image; None if the SDK chose one.
        private_registry: the section of an image in no ECR; None for ECR.
        model_data: prefix or archive in S3; None without one.
        model: repository of the Hub that a `ModelBuilder` is given.
        endpoint: fields of the section `endpoint`.
        left_out: arguments that the config does not have.
    """

    origin: str
    instance: str | None = None
    image_uri: str | None = None
    private_registry: Mapping[str, str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    model_data: str | None = None
    model: str | None = None
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[Setting, ...] = ()


def read_call(path: Path, shown: str) -> Call:
    """Reads the arguments: flat, or under `model` and `deploy`; raises `UserError`."""
    arguments = _arguments(path, shown)
    left_out: list[Setting] = []
    endpoint: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        if value is None or value in ([], {}, "") or name in _CLIENTS:
            continue
        if name in _ENVIRONMENT and isinstance(value, dict):
            variables = {str(key): _text(each) for key, each in value.items()}
            found["environment"] = {
                key: each for key, each in variables.items() if not is_secret(key, each)
            }
            left_out += [
                Setting(key, each, NO_SECRETS)
                for key, each in variables.items()
                if is_secret(key, each)
            ]
        elif name in ("image_uri", "model_data", "model") and _place(value) is not None:
            found[name] = _place(value)
        elif name == "instance_type" and isinstance(value, str):
            found["instance"] = value
        elif name == "tags" and _tags(value) is not None:
            found["tags"] = _tags(value)
        elif fields := dict(_endpoint_fields(name, value)):
            endpoint |= fields
        else:
            reason = _REASONS.get(name, "no field of the config says it.")
            left_out.append(Setting(name, _text(value), reason))
    return Call(origin=shown, endpoint=endpoint, left_out=tuple(left_out), **found)


def _arguments(path: Path, shown: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise UserError.of(
            Code.IMPORT_UNREADABLE,
            f"{shown} cannot be read: {error.strerror}",
            "Name the file that the notebook wrote.",
        ) from None
    try:
        document = parse_json(content) if len(content) <= _LARGEST_BYTES else None
    except ValueError as error:
        raise UserError.of(
            Code.IMPORT_UNREADABLE,
            f"{shown} is not JSON: {error}",
            "Write it in the notebook with `json.dump(..., default=str)`.",
        ) from None
    if not isinstance(document, dict):
        raise UserError.of(
            Code.IMPORT_UNREADABLE,
            f"{shown} has no object of keyword arguments",
            'Write `{"model": {...}, "deploy": {...}}`, the arguments of the two calls.',
        )
    flat = {name: value for name, value in document.items() if name not in _GROUPS}
    for group in _GROUPS:
        value = document.get(group)
        if isinstance(value, dict):
            flat |= value
        elif value is not None:
            flat[group] = value
    return flat


def _endpoint_fields(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the fields of the section `endpoint` that an argument says; none for another one."""
    if name in _NUMBERS and isinstance(value, int) and not isinstance(value, bool):
        yield _NUMBERS[name], value
    elif name == "inference_ami_version" and isinstance(value, str):
        yield "inference_ami_version", value
    elif name == "enable_network_isolation" and isinstance(value, bool):
        yield "network_isolation", value
    elif name == "kms_key" and isinstance(value, str) and value.startswith("arn:"):
        yield "volume_key_arn", value
    elif name == "vpc_config" and isinstance(value, dict):
        subnets, groups = value.get("Subnets"), value.get("SecurityGroupIds")
        if isinstance(subnets, list) and isinstance(groups, list) and subnets and groups:
            yield "vpc", {"subnet_ids": subnets, "security_group_ids": groups}
    elif name == "routing_config" and isinstance(value, dict):
        strategy = _ROUTING.get(str(value.get("RoutingStrategy")))
        if strategy is not None:
            yield "routing", strategy


def _place(value: Any) -> str | None:
    """Returns an address: a text, or the S3Uri of a model data source."""
    if isinstance(value, dict):
        value = value.get("S3DataSource", value)
        value = value.get("S3Uri") if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _tags(value: Any) -> dict[str, str] | None:
    """Returns tags of AWS's form as a mapping; None for anything else."""
    if not isinstance(value, list):
        return None
    if not all(isinstance(each, dict) and {"Key", "Value"} <= set(each) for each in value):
        return None
    return {str(each["Key"]): str(each["Value"]) for each in value}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
