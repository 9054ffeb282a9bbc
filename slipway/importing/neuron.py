"""The section `serving` of a Neuron container, from its image and its variables."""

import re
from collections.abc import Mapping
from typing import Any

from slipway.facts.instances import InstanceFacts
from slipway.importing.draft import FieldName, Guess
from slipway.importing.own_images import LONGEST_GRAPH, OwnSection, Variables
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


def neuron_section(variables: Variables, tag: str, facts: InstanceFacts | None) -> OwnSection:
    found = variables.take(_FIELDS)
    variables.drop(*_DERIVED)
    is_pipeline = found.get("pipeline_cores", 1) > 1
    if not is_pipeline:
        found.pop("pipeline_cores", None)
    framework = _FRAMEWORK.match(tag)
    serving: dict[str, Any] = {
        "container": "neuron",
        "framework": framework[0] if framework else "neuronx",
        "objective": "latency" if is_pipeline else "throughput",
        **found,
    }
    guesses: dict[FieldName, Guess] = {
        ("serving", "objective"): Guess("it follows from the number of cores of each worker."),
        ("serving", "sequence_length"): LONGEST_GRAPH,
    }
    target = TARGETS.get(instance_family(facts)) if facts else None
    return OwnSection(serving, target, guesses, variables.left_out())
