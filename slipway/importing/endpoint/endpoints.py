"""Joins everything that a config says of an endpoint, except the serving of its container."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from slipway.deployed.answers import Answer
from slipway.deployed.described import Described
from slipway.errors import UserError
from slipway.facts.instances import instance_types
from slipway.importing.call import Call
from slipway.importing.draft import NO_SECRETS, SLIPWAYS_ROLE, Draft, is_secret
from slipway.importing.endpoint.alarms import alarms_section
from slipway.importing.endpoint.components import scales_to_zero
from slipway.importing.endpoint.containers import (
    container_of,
    refuse_other_forms,
    take_network,
)
from slipway.importing.endpoint.data import (
    NO_KEY_ARN,
    async_section,
    capture_section,
    metrics_section,
    take_key,
)
from slipway.importing.endpoint.findings import Findings
from slipway.importing.endpoint.rollouts import rollout_section
from slipway.importing.endpoint.scaling import autoscaling_section
from slipway.importing.endpoint.variants import variant_fields

_OWN_TAGS = ("aws:", "slipway:")
_ABOUT = (
    "EndpointConfigName", "EndpointConfigArn", "CreationTime", "ResponseMetadata",
    "ProductionVariants", "ShadowProductionVariants",
)  # fmt: skip
_REASONS: Mapping[str, str] = {
    "ExecutionRoleArn": SLIPWAYS_ROLE,
    "KmsKeyId": NO_KEY_ARN,
}
_SETTLED = "InService"


@dataclass(frozen=True)
class Hosted:
    """An endpoint in the terms of a config.

    The call is as a notebook's would be, and the sections are those that no call tells.
    """

    call: Call
    sections: Mapping[str, Mapping[str, Any]]
    found: Findings

    def complete(self, draft: Draft) -> Draft:
        content = dict(draft.content)
        # In the order of the schema, in which people look for them.
        for name in (*self.sections, "tags"):
            content.pop(name, None)
        content |= self.sections
        if self.call.tags:
            content["tags"] = dict(self.call.tags)
        guesses = {
            path: guess
            for path, guess in draft.guesses.items()
            if path[0] not in self.sections and not _is_told(self.call.endpoint, path)
        }
        return replace(
            draft,
            content=content,
            guesses=guesses | self.found.guesses,
            changed=[*self.found.changed, *draft.changed],
        )


def hosted(described: Described, latency_milliseconds: int | None = None) -> Hosted:
    """Returns an endpoint in the terms of a config; raises `UserError` if no config can say it."""
    found = Findings()
    refuse_other_forms(described, found)
    config = Answer(described.config, _ABOUT)
    endpoint: dict[str, Any] = {}
    capture, is_async = capture_section(config, found), async_section(config, found)
    take_key(config, ("KmsKeyId",), endpoint, "volume_key_arn")
    # The configuration, and not the model, has the network of an inference component.
    network = take_network(config) if scales_to_zero(described) else {}
    metrics = metrics_section(config, found, is_async=is_async is not None)
    found.leave_out_rest(config, **_REASONS)
    container = container_of(described, found)
    endpoint = {**variant_fields(described, found), **endpoint, **container.fields, **network}
    if is_async is not None:
        endpoint |= {"mode": "async", "async_inference": is_async}
    if capture is not None:
        endpoint["data_capture"] = capture
    if metrics is not None:
        endpoint["metrics"] = metrics
    if (days := (described.log_group or {}).get("retentionInDays")) is not None:
        endpoint["log_retention_days"] = days
    elif described.log_group is not None:
        found.change("log group", "kept for ever", "for 30 days now, or `log_retention_days`.")
    status = described.endpoint.get("EndpointStatus", _SETTLED)
    if status != _SETTLED:
        reason = "a change is under way or has failed. Import again when it is over."
        found.leave_out("EndpointStatus", status, reason)
    instance = endpoint["instances"][0]
    sections: dict[str, dict[str, Any]] = {}
    facts = instance_types().get(instance)
    gpus = facts.gpu_count if facts is not None else 1
    if (scaling := autoscaling_section(described, gpus, found)) is not None:
        sections["autoscaling"] = scaling
    sections["alarms"] = alarms_section(described, gpus, found, latency_milliseconds)
    if (rollout := rollout_section(described, found)) is not None:
        sections["rollout"] = rollout
    if found.problems:
        raise UserError(found.refusals())
    variables = dict(container.environment)
    for name in [name for name, value in variables.items() if is_secret(name, value)]:
        found.leave_out(name, variables.pop(name), NO_SECRETS)
    call = Call(
        origin=described.origin,
        instance=instance,
        image_uri=container.image,
        private_registry=container.private_registry,
        environment=variables,
        model_data=container.data,
        endpoint=endpoint,
        tags={
            name: value
            for name, value in described.tags.items()
            if not name.lower().startswith(_OWN_TAGS)
        },
        left_out=tuple(found.left_out),
    )
    return Hosted(call, sections, found)


def _is_told(endpoint: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Returns whether the endpoint itself has a field, so that it is no guess of the container."""
    return path[0] == "endpoint" and len(path) > 1 and path[1] in endpoint
