"""The section `serving` of a TensorRT container, from its image and its variables."""

import re
from collections.abc import Mapping
from typing import Any

from slipway.config.sections.serving.tensorrt import TensorRTServing
from slipway.facts.instances import instance_types
from slipway.importing.call import Call
from slipway.importing.draft import Draft, FieldName, Guess, KnownFacts
from slipway.importing.own_images import Variables, own_draft

_FIELDS: Mapping[str, str] = {
    "SLIPWAY_DEFAULT_NEW_TOKENS": "default_new_tokens",
    "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "max_batch_delay_milliseconds",
    "SLIPWAY_MAX_BATCH_SIZE": "max_batch_size",
    "SLIPWAY_MAX_INPUT_TOKENS": "max_input_tokens",
    "SLIPWAY_MAX_NEW_TOKENS": "max_new_tokens",
    "SLIPWAY_MAX_QUEUE_LENGTH": "max_queue_length",
    "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "request_timeout_seconds",
}
_RELEASE = re.compile(r"trt(\d+\.\d+)-")


def tensorrt_draft(
    call: Call, given: KnownFacts, guesses: Mapping[FieldName, Guess], tag: str
) -> Draft:
    """Returns the config of an endpoint with Slipway's TensorRT image.

    Args:
        call: image, instances and variables.
        given: all facts that a config needs.
        guesses: the facts that are guesses, by field.
        tag: of the image.
    """
    variables = Variables(call.environment)
    default = TensorRTServing.model_fields["dtype"].default
    section: dict[str, Any] = {"container": "tensorrt", "dtype": default}
    if release := _RELEASE.match(tag):
        section["tensorrt_version"] = release[1]
    section |= variables.take(_FIELDS)
    reason = "nothing but the engine tells its precision. This is Slipway's default."
    facts = instance_types().get(given.instance or "")
    return own_draft(
        call,
        given,
        {**guesses, ("serving", "dtype"): Guess(reason)},
        section,
        target=facts.compute_capability if facts else None,
        left_out=variables.left_out(),
    )
