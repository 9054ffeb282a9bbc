"""The config of AWS's Triton image, which serves a model repository unchanged."""

import re
from collections.abc import Mapping
from typing import Any

from slipway.facts.images import versions
from slipway.facts.instances import instance_types
from slipway.facts.triton.releases import TRITON
from slipway.importing.call import Call
from slipway.importing.draft import Draft, FieldName, Guess, KnownFacts, Setting, alarms_of
from slipway.importing.own_images import Variables

_IMAGE = re.compile(rf"/{TRITON}:((\d\d\.\d\d)-py3(?:-cpu)?)$")
_FIELDS: Mapping[str, str] = {
    "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "default_model",
    "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "shared_memory_bytes",
    "SAGEMAKER_TRITON_LOG_VERBOSE": "log_verbose",
}


def release_of(uri: str) -> str | None:
    """Returns the release of AWS's Triton image; None for any other image or release.

    Args:
        uri: `ACCOUNT.dkr.ecr.REGION.amazonaws.com/sagemaker-tritonserver:25.09-py3`.
    """
    found = _IMAGE.search(uri)
    return found[2] if found is not None and found[2] in versions(TRITON) else None


def repository_draft(
    call: Call, given: KnownFacts, guesses: Mapping[FieldName, Guess], release: str, folder: str
) -> Draft:
    """Returns the config of an endpoint with AWS's Triton image.

    Args:
        call: image, instances and variables.
        given: all facts that a config needs.
        guesses: the facts that are guesses, by field.
        release: of the image.
        folder: folder of the project for the model repository.
    """
    variables = Variables(call.environment)
    found = variables.take(_FIELDS)
    if "default_model" in found:
        found["default_model"] = str(found["default_model"])
    if "log_verbose" in found:
        found["log_verbose"] = found["log_verbose"] == "true"
    facts = instance_types().get(given.instance or "")
    section: dict[str, Any] = {
        "container": "triton",
        "version": release,
        "repository": folder,
        **found,
        "backend": "tensorrt" if facts is not None and facts.compute_capability else "onnxruntime",
    }
    if variables.rest:
        section["environment"] = variables.rest
    alarms, more = alarms_of(given, call.origin)
    more["serving", "repository"] = Guess(
        f"a folder for the model repository, which lies in {call.model_data}."
    )
    more["serving", "backend"] = Guess(
        "it follows from the instance type. Triton runs the backends that config.pbtxt names."
    )
    content: dict[str, Any] = {
        "name": given.name,
        "model": {"family": given.family, "parameters": given.parameters, **given.shape},
        "serving": section,
        "endpoint": {"instances": [given.instance], **given.endpoint},
        "alarms": alarms,
    }
    if given.tags:
        content["tags"] = dict(given.tags)
    changed: list[Setting] = []
    tag = _IMAGE.search(call.image_uri or "")
    if tag is not None and tag[1].endswith("-cpu"):
        reason = f"{release}-py3 now, which runs without a GPU too."
        changed.append(Setting("Image", str(call.image_uri), reason))
    return Draft(content, {**guesses, **more}, changed=changed, left_out=call.left_out)
