"""The section `serving` of Slipway's Triton container, from its image and its variables."""

import re
from collections.abc import Mapping
from typing import Any

from slipway.facts.instances import instance_types
from slipway.importing.call import Call
from slipway.importing.draft import Draft, FieldName, Guess, KnownFacts
from slipway.importing.own_images import Variables, own_draft

_FIELDS: Mapping[str, str] = {
    "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "default_model",
    "SLIPWAY_MAX_BATCH_SIZE": "max_batch_size",
    "SLIPWAY_MAX_BATCH_DELAY_MICROSECONDS": "max_batch_delay_microseconds",
    "SLIPWAY_MAX_QUEUE_LENGTH": "max_queue_length",
    "SLIPWAY_INSTANCE_COUNT": "instance_group_count",
    "SLIPWAY_MAX_INPUT_TOKENS": "max_input_tokens",
    "SLIPWAY_MAX_NEW_TOKENS": "max_new_tokens",
    "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "shared_memory_bytes",
    "SAGEMAKER_TRITON_LOG_VERBOSE": "log_verbose",
}
_VERSION = re.compile(r"triton(\d\d\.\d\d)-")


def triton_draft(
    call: Call, given: KnownFacts, guesses: Mapping[FieldName, Guess], tag: str
) -> Draft:
    """Returns the config of an endpoint with Slipway's Triton image.

    Args:
        call: image, instances and variables.
        given: all facts that a config needs.
        guesses: the facts that are guesses, by field.
        tag: of the image.
    """
    variables = Variables(call.environment)
    found = variables.take(_FIELDS)
    if "log_verbose" in found:
        found["log_verbose"] = found["log_verbose"] == "true"
    version = _VERSION.match(tag)
    facts = instance_types().get(given.instance or "")
    capability = facts.compute_capability if facts else None
    section: dict[str, Any] = {
        "container": "triton",
        "version": version[1] if version else "",
        "backend": "tensorrt" if capability else "onnxruntime",
        **found,
    }
    if variables.rest:
        section["environment"] = variables.rest
    more: dict[FieldName, Guess] = {
        ("serving", "backend"): Guess("it follows from the instance type.")
    }
    return own_draft(
        call, given, {**guesses, **more}, section, target=capability or "cpu", left_out=[]
    )
