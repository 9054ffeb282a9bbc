"""The section `serving` of a TensorRT container, from its image and its variables."""

import re
from collections.abc import Mapping
from typing import Any

from slipway.config.sections.serving.tensorrt import TensorRTServing
from slipway.facts.instances import InstanceFacts
from slipway.importing.draft import Guess
from slipway.importing.own_images import OwnSection, Variables

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


def tensorrt_section(variables: Variables, tag: str, facts: InstanceFacts | None) -> OwnSection:
    """Returns what the variables of a TensorRT container say."""
    default = TensorRTServing.model_fields["dtype"].default
    serving: dict[str, Any] = {"container": "tensorrt", "dtype": default}
    if release := _RELEASE.match(tag):
        serving["tensorrt_version"] = release[1]
    serving |= variables.take(_FIELDS)
    reason = "nothing but the engine tells its precision. This is Slipway's default."
    return OwnSection(
        serving,
        facts.compute_capability if facts else None,
        {("serving", "dtype"): Guess(reason)},
        variables.left_out(),
    )
