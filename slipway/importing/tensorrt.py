"""The section `serving` of a TensorRT container, from its image and its variables."""

import re
from collections.abc import Mapping
from typing import Any

from slipway.config.sections.serving.tensorrt import TensorRTServing
from slipway.facts.instances import InstanceFacts
from slipway.importing.draft import FieldName, Guess
from slipway.importing.own_images import LONGEST_GRAPH, OwnSection, Variables
from slipway.planning.compiling import CPU

_FIELDS: Mapping[str, str] = {
    "SLIPWAY_DEFAULT_NEW_TOKENS": "default_new_tokens",
    "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "max_batch_delay_milliseconds",
    "SLIPWAY_MAX_BATCH_SIZE": "max_batch_size",
    "SLIPWAY_MAX_INPUT_TOKENS": "max_input_tokens",
    "SLIPWAY_MAX_NEW_TOKENS": "max_new_tokens",
    "SLIPWAY_MAX_QUEUE_LENGTH": "max_queue_length",
    "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "request_timeout_seconds",
}
_FIELDS_OF_ENCODERS: Mapping[str, str] = {
    "SLIPWAY_DTYPE": "dtype",
    "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "max_batch_delay_milliseconds",
    "SLIPWAY_MAX_BATCH_SIZE": "batch_size",
    "SLIPWAY_MAX_QUEUE_LENGTH": "max_queue_length",
    "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "request_timeout_seconds",
    "SLIPWAY_SEQUENCE_LENGTH": "sequence_length",
}
_RELEASE = re.compile(r"trt(\d+\.\d+)-")


def tensorrt_section(variables: Variables, tag: str, facts: InstanceFacts | None) -> OwnSection:
    default = TensorRTServing.model_fields["dtype"].default
    serving: dict[str, Any] = {"container": "tensorrt", "dtype": default}
    if release := _RELEASE.match(tag):
        serving["tensorrt_version"] = release[1]
    runs_on_cpu = facts is not None and facts.accelerator_known and facts.accelerator is None
    target = CPU if runs_on_cpu else facts.compute_capability if facts else None
    if task := variables.take({"SLIPWAY_TASK": "task"}):
        serving |= task | variables.take(_FIELDS_OF_ENCODERS)
        return OwnSection(
            serving,
            target,
            {("serving", "sequence_length"): LONGEST_GRAPH},
            variables.left_out(),
        )
    serving |= variables.take(_FIELDS)
    if runs_on_cpu:
        serving["dtype"] = "fp32"  # fp16 is for GPUs
    reason = "nothing but the engine or the graph tells its precision. This is Slipway's default."
    guesses: dict[FieldName, Guess] = {("serving", "dtype"): Guess(reason)}
    return OwnSection(serving, target, guesses, variables.left_out())
