"""The section `serving` of a Neuron container, from its image and its variables."""

import re
from collections.abc import Mapping
from typing import Any

from slipway.facts.instances import instance_types
from slipway.importing.call import Call
from slipway.importing.draft import Draft, FieldName, Guess, KnownFacts
from slipway.importing.own_images import Variables, own_draft
from slipway.planning.families.neuron.hardware import TARGETS, instance_family

_FIELDS: Mapping[str, str] = {
    "SLIPWAY_TASK": "task",
    "SLIPWAY_SEQUENCE_LENGTH": "sequence_length",
    "SLIPWAY_MAX_BATCH_SIZE": "batch_size",
    "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "max_batch_delay_milliseconds",
    "SLIPWAY_PIPELINE_CORES": "pipeline_cores",
    "SLIPWAY_WORKERS": "workers",
    "SLIPWAY_DTYPE": "dtype",
    "SLIPWAY_MAX_QUEUE_LENGTH": "max_queue_length",
    "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "request_timeout_seconds",
}
# Slipway sets them from the number of workers and of cores.
_DERIVED = ("NEURON_RT_NUM_CORES", "SAGEMAKER_MODEL_SERVER_WORKERS")
_FRAMEWORK = re.compile(r"neuronx?")


def neuron_draft(
    call: Call, given: KnownFacts, guesses: Mapping[FieldName, Guess], tag: str
) -> Draft:
    """Returns the config of an endpoint with Slipway's Neuron image.

    Args:
        call: image, instances and variables.
        given: all facts that a config needs.
        guesses: the facts that are guesses, by field.
        tag: of the image.
    """
    variables = Variables(call.environment)
    found = variables.take(_FIELDS)
    variables.drop(*_DERIVED)
    is_pipeline = found.get("pipeline_cores", 1) > 1
    if not is_pipeline:
        found.pop("pipeline_cores", None)
    framework = _FRAMEWORK.match(tag)
    section: dict[str, Any] = {
        "container": "neuron",
        "framework": framework[0] if framework else "neuronx",
        "objective": "latency" if is_pipeline else "throughput",
        **found,
    }
    more: dict[FieldName, Guess] = {
        ("serving", "objective"): Guess("it follows from the number of cores of each worker."),
        ("serving", "sequence_length"): Guess(
            "the longest graph. Add `sequence_lengths` where there are shorter ones too."
        ),
    }
    facts = instance_types().get(given.instance or "")
    return own_draft(
        call,
        given,
        {**guesses, **more},
        section,
        target=TARGETS.get(instance_family(facts)) if facts else None,
        left_out=variables.left_out(),
    )
