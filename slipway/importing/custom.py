"""Makes a config that serves weights with any image, from a notebook's call.

Images of the Hugging Face Hub download the weights that HF_MODEL_ID names. Here Slipway publishes
them, and SageMaker places them in /opt/ml/model: the container needs no network and no token.
"""

import re
from typing import Any

from slipway.importing.call import Call
from slipway.importing.draft import (
    Draft,
    FieldName,
    Guess,
    KnownFacts,
    Setting,
    alarms_of,
    printable,
)
from slipway.importing.weights import WeightsPlace, named_weights

_MODEL_VARIABLE = "HF_MODEL_ID"
_MODEL_DIRECTORY = "/opt/ml/model"
_REVISION = "HF_REVISION"
_DEFAULT_START_SECONDS = 600
# Hugging Face's own inference toolkit takes the variable for a repository, and finds the directory
# by itself (sagemaker-huggingface-inference-toolkit, mms_model_server.py).
_TOOLKIT = re.compile(r"/huggingface-(pytorch|tensorflow|neuronx?)(-trcomp)?-inference:")


def custom_draft(call: Call, given: KnownFacts, guesses: dict[FieldName, Guess]) -> Draft:
    image_uri, environment = call.image_uri or "", dict(call.environment)
    changed: list[Setting] = []
    model_id = environment.pop(_MODEL_VARIABLE, None)
    environment.pop(_REVISION, None)
    if model_id is not None:
        reason = "the weights are published, and SageMaker places them in /opt/ml/model."
        if not _TOOLKIT.search(image_uri):
            environment = {_MODEL_VARIABLE: _MODEL_DIRECTORY, **environment}
            reason = f"{_MODEL_DIRECTORY} now: {reason}"
        changed.append(Setting(_MODEL_VARIABLE, model_id, reason))
    alarms, more = alarms_of(given, call.origin)
    endpoint: dict[str, Any] = {"instances": [given.instance], **given.endpoint}
    start = "container_startup_health_check_timeout_seconds"
    if start not in endpoint:
        endpoint[start] = _DEFAULT_START_SECONDS
        more["endpoint", start] = Guess(
            f"{call.origin} does not say it. The container loads the model within it."
        )
    if "network_isolation" not in endpoint:
        endpoint["network_isolation"] = True
        more["endpoint", "network_isolation"] = Guess(
            "SageMaker places the weights, so that the container needs no network for them."
        )
    serving: dict[str, Any] = {"container": "custom", "image_uri": image_uri}
    if call.private_registry is not None:
        serving["private_registry"] = dict(call.private_registry)
    if environment:
        serving["environment"] = environment
    content = given.content(serving, alarms, artifacts=given.artifacts, endpoint=endpoint)
    return Draft(content, guesses | more, changed=changed, left_out=call.left_out)


def weights_place(call: Call) -> WeightsPlace:
    named = {
        "model_data": call.model_data,
        _MODEL_VARIABLE: call.environment.get(_MODEL_VARIABLE),
        "model": call.model,
    }
    for name, value in named.items():
        if value and not value.startswith("/opt/ml/"):
            shown = f"{name}={printable(value)}"
            return named_weights(shown, value, call.environment.get(_REVISION))
    return WeightsPlace("", missing="no argument names the weights")
