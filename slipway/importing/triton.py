"""Imports endpoints on Triton: on Slipway's image, or on AWS's image with a model repository."""

import re
from collections.abc import Mapping
from typing import Any

from slipway.facts.images import versions
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.facts.triton.releases import TRITON
from slipway.importing.call import Call
from slipway.importing.draft import Draft, FieldName, Guess, KnownFacts, Setting, alarms_of
from slipway.importing.own_images import OwnSection, Variables

# Of both images.
_SERVER_FIELDS: Mapping[str, str] = {
    "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "default_model",
    "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "shared_memory_bytes",
    "SAGEMAKER_TRITON_LOG_VERBOSE": "log_verbose",
}
_OWN_FIELDS: Mapping[str, str] = {
    "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "default_model",
    "SLIPWAY_MAX_BATCH_SIZE": "max_batch_size",
    "SLIPWAY_MAX_BATCH_DELAY_MICROSECONDS": "max_batch_delay_microseconds",
    "SLIPWAY_MAX_QUEUE_LENGTH": "max_queue_length",
    "SLIPWAY_INSTANCE_COUNT": "instance_group_count",
    "SLIPWAY_MAX_INPUT_TOKENS": "max_input_tokens",
    "SLIPWAY_MAX_NEW_TOKENS": "max_new_tokens",
    **_SERVER_FIELDS,
}
_VERSION = re.compile(r"triton(\d\d\.\d\d)-")
_IMAGE_OF_AWS = re.compile(rf"/{TRITON}:((\d\d\.\d\d)-py3(?:-cpu)?)$")


def triton_section(variables: Variables, tag: str, facts: InstanceFacts | None) -> OwnSection:
    found = _taken(variables, _OWN_FIELDS)
    version = _VERSION.match(tag)
    capability = facts.compute_capability if facts else None
    serving: dict[str, Any] = {
        "container": "triton",
        "version": version[1] if version else "",
        "backend": "tensorrt" if capability else "onnxruntime",
        **found,
        **_environment(variables),
    }
    guesses: dict[FieldName, Guess] = {
        ("serving", "backend"): Guess("it follows from the instance type.")
    }
    return OwnSection(serving, capability or "cpu", guesses)


def release_of(uri: str) -> str | None:
    """Returns the release of AWS's Triton image, such as `25.09`; None for any other image."""
    found = _IMAGE_OF_AWS.search(uri)
    return found[2] if found is not None and found[2] in versions(TRITON) else None


def repository_draft(
    call: Call, given: KnownFacts, guesses: Mapping[FieldName, Guess], release: str, folder: str
) -> Draft:
    variables = Variables(call.environment)
    found = _taken(variables, _SERVER_FIELDS)
    if "default_model" in found:
        found["default_model"] = str(found["default_model"])
    facts = instance_types().get(given.instance or "")
    serving: dict[str, Any] = {
        "container": "triton",
        "version": release,
        "repository": folder,
        **found,
        "backend": "tensorrt" if facts is not None and facts.compute_capability else "onnxruntime",
        **_environment(variables),
    }
    alarms, more = alarms_of(given, call.origin)
    more["serving", "repository"] = Guess(
        f"a folder for the model repository, which lies in {call.model_data}."
    )
    more["serving", "backend"] = Guess(
        "it follows from the instance type. Triton runs the backends that config.pbtxt names."
    )
    changed: list[Setting] = []
    tag = _IMAGE_OF_AWS.search(call.image_uri or "")
    if tag is not None and tag[1].endswith("-cpu"):
        reason = f"{release}-py3 now, which runs without a GPU too."
        changed.append(Setting("Image", str(call.image_uri), reason))
    content = given.content(serving, alarms)
    return Draft(content, {**guesses, **more}, changed=changed, left_out=call.left_out)


def _taken(variables: Variables, fields: Mapping[str, str]) -> dict[str, Any]:
    found = variables.take(fields)
    if "log_verbose" in found:
        found["log_verbose"] = found["log_verbose"] == "true"
    return found


def _environment(variables: Variables) -> dict[str, Any]:
    return {"environment": variables.rest} if variables.rest else {}
