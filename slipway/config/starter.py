"""A first model config: valid, with the schema's own words above every field.

Some values are answers of the user. All others are defaults that suit the container family and the
instance type. The rules check whether they go together.
"""

from __future__ import annotations

import json
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from slipway.codes.code import Code
from slipway.config.editor_schema import FIRST_LINE
from slipway.config.fields import find, tag_of
from slipway.config.schema import ModelConfig
from slipway.config.sections.serving.lmi import LmiServing
from slipway.errors import UserError
from slipway.facts.images import image, versions
from slipway.facts.instances import Accelerator, architecture, instance_types
from slipway.facts.lmi.versions import lmi_version

Container = Literal["tensorrt", "lmi", "triton", "neuron", "custom"]
CONTAINERS: tuple[Container, ...] = typing.get_args(Container)
LMI_FRAMEWORKS: tuple[str, ...] = typing.get_args(LmiServing.model_fields["framework"].annotation)
# The one that AWS still develops.
DEFAULT_LMI_FRAMEWORK = "djl-lmi"

_COLUMNS = 100
_TRITON = "sagemaker-tritonserver"
# What a release is and supports is the same in every region where it is published.
_ANY_REGION = "us-east-1"
# bf16 came with NVIDIA's Ampere.
_FIRST_WITH_BF16 = "sm80"
_NEURON_COMPILE_INSTANCE = "ml.c5.4xlarge"
_NOTES: Mapping[tuple[str, str], str] = {
    ("lmi", "network_isolation"): "The container copies the weights from S3 itself.",
    ("lmi", "container_startup_health_check_timeout_seconds"): (
        "The weights are copied and loaded within it."
    ),
}


@dataclass(frozen=True)
class Answers:
    """The answers of the user for a first config.

    Args:
        name: name of the model.
        container: family of the container.
        family: architecture of the network.
        parameters: number of its weights.
        shape: further fields of the section `model`, as `read_checkpoint` finds them.
        instance: hosting instance type.
        latency_milliseconds: objective for the 99th percentile of the answers.
        sample: directory of a small model, relative to the project.
        weights: the section `artifacts.weights`, as `parse_weights` returns it.
        framework: for LMI, one of `LMI_FRAMEWORKS`; None takes the living one.
        task: for Neuron, the model's task.
        repository: for Triton, directory of a model repository.
        image_uri: for a custom container, its image.
    """

    name: str
    container: Container
    family: str
    parameters: int
    instance: str
    latency_milliseconds: int
    shape: Mapping[str, int] = field(default_factory=dict)
    sample: str | None = None
    weights: Mapping[str, str] | None = None
    framework: str | None = None
    task: str | None = None
    repository: str | None = None
    image_uri: str | None = None


def parse_weights(text: str) -> dict[str, str]:
    """Parses `hub:OWNER/NAME@REVISION`, `s3://BUCKET/PREFIX/` or a directory's path.

    Raises:
        UserError: a repository of the Hub has no commit.
    """
    if text.startswith("s3://"):
        return {"source": "s3", "uri": text}
    if not text.startswith("hub:"):
        return {"source": "path", "path": text}
    repository, _, revision = text.removeprefix("hub:").partition("@")
    if not repository or not revision:
        raise UserError.of(
            Code.NO_COMMIT,
            f"`--weights {text}` names no commit",
            "Write `hub:OWNER/NAME@REVISION` with all 40 digits of the commit: a branch could "
            "change under you.",
        )
    return {"source": "hub", "repository": repository, "revision": revision}


def newest_lmi_version(framework: str) -> str:
    """Returns the newest version of an LMI image whose own sources the facts are from."""
    known = [name for name in versions(framework) if lmi_version(framework, name).facts_of is None]
    return known[-1]


def render(answers: Answers) -> str:
    """Returns the file's text."""
    facts = instance_types().get(answers.instance)
    serving = _SERVING[answers.container](answers, facts.accelerator if facts else None)
    content: dict[str, Any] = {
        "name": answers.name,
        "description": "",
        "model": {
            "family": answers.family,
            "parameters": answers.parameters,
            **answers.shape,
        },
        "serving": {"container": answers.container, **serving},
        "artifacts": _artifacts(answers),
        "endpoint": _endpoint(answers),
        "autoscaling": {
            "min_instance_count": 1,
            "max_instance_count": 2,
            "target_concurrent_requests_per_instance": _concurrent_requests(serving),
        },
        "alarms": {"model_latency_p99_milliseconds": answers.latency_milliseconds},
    }
    return "\n".join([FIRST_LINE, *_lines(content, (), answers.container)]) + "\n"


def _tensorrt(_: Answers, __: Accelerator | None) -> dict[str, Any]:
    return {
        "max_batch_size": 8,
        "max_input_tokens": 64,
        "max_new_tokens": 42,
        "default_new_tokens": 12,
    }


def _lmi(answers: Answers, accelerator: Accelerator | None) -> dict[str, Any]:
    framework = answers.framework or DEFAULT_LMI_FRAMEWORK
    serving: dict[str, Any] = {
        "framework": framework,
        "version": newest_lmi_version(framework),
        # One copy over the whole instance: what fits at all fits so.
        "tensor_parallel_degree": _devices(accelerator),
        "dtype": _dtype(answers.family, accelerator),
    }
    if framework == DEFAULT_LMI_FRAMEWORK:
        # Its own handler batches continuously; in the other images that depends on the model.
        serving["max_rolling_batch_size"] = 16
    return {**serving, "max_input_tokens": 1024, "max_new_tokens": 256}


def _devices(accelerator: Accelerator | None) -> int:
    return (accelerator.neuron_cores or accelerator.count) if accelerator else 1


def _dtype(family: str, accelerator: Accelerator | None) -> str:
    capability = accelerator.compute_capability if accelerator else None
    if capability is None or architecture(capability) >= architecture(_FIRST_WITH_BF16):
        return "bf16"
    # T5 in fp16 answers degraded text (facts: lmi).
    return "fp32" if family == "t5" else "fp16"


def _triton(answers: Answers, accelerator: Accelerator | None) -> dict[str, Any]:
    serving: dict[str, Any] = {"version": _triton_version(accelerator)}
    if answers.repository is not None:
        serving["repository"] = answers.repository
    return {**serving, "max_batch_size": 8, "max_input_tokens": 64, "max_new_tokens": 64}


def _triton_version(accelerator: Accelerator | None) -> str:
    """Returns the newest release that supports the GPU, or the newest of all."""
    known = versions(_TRITON)
    capability = accelerator.compute_capability if accelerator else None
    if capability is None:
        return known[-1]
    fitting = [
        version
        for version in known
        if (least := image(_TRITON, version, _ANY_REGION).minimum_compute_capability)
        and architecture(least) <= architecture(capability)
    ]
    return (fitting or known)[-1]


def _neuron(answers: Answers, _: Accelerator | None) -> dict[str, Any]:
    first_generation = answers.instance.startswith("ml.inf1.")
    return {
        "framework": "neuron" if first_generation else "neuronx",
        "task": answers.task,
        "objective": "throughput",
        "sequence_length": 128,
        "batch_size": 6 if first_generation else 8,
    }


def _custom(answers: Answers, _: Accelerator | None) -> dict[str, Any]:
    return {"image_uri": answers.image_uri}


_SERVING: Mapping[Container, Callable[[Answers, Accelerator | None], dict[str, Any]]] = {
    "tensorrt": _tensorrt,
    "lmi": _lmi,
    "triton": _triton,
    "neuron": _neuron,
    "custom": _custom,
}


def _concurrent_requests(serving: Mapping[str, Any]) -> int:
    """Returns the number of requests per instance that autoscaling aims at: one batch."""
    for name in ("max_rolling_batch_size", "max_batch_size", "batch_size"):
        if name in serving:
            return int(serving[name])
    return 4


def _artifacts(answers: Answers) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if answers.sample is not None:
        found["sample"] = {"path": answers.sample}
    if answers.weights is None:
        return found
    found["weights"] = dict(answers.weights)
    if answers.container in ("tensorrt", "triton"):
        found["compile"] = {"instance": answers.instance}
    elif answers.container == "neuron":
        found["compile"] = {"instance": _NEURON_COMPILE_INSTANCE}
    return found


def _endpoint(answers: Answers) -> dict[str, Any]:
    is_lmi = answers.container == "lmi"
    endpoint: dict[str, Any] = {
        "instances": [answers.instance],
        "instance_count": 1,
        "model_data_download_timeout_seconds": 600,
        "container_startup_health_check_timeout_seconds": 1800 if is_lmi else 600,
    }
    return endpoint | {"network_isolation": False} if is_lmi else endpoint


def _lines(content: Mapping[str, Any], path: tuple[str, ...], container: str) -> Iterator[str]:
    """Yields a section's lines.

    Args:
        content: the section.
        path: the validator's path to it, with the tag of each union after its field.
        container: for the notes of its family.
    """
    for name, value in content.items():
        place = find(ModelConfig, (*path, name))
        indent = "  " * (len(place.field) - 1)
        if not path and isinstance(value, dict):
            yield ""
        text = place.info.description if place.info else None
        if not text and place.sections:
            text = (place.sections[0].__doc__ or "").strip().splitlines()[0]
        note = _NOTES.get((container, name), "")
        if text or note:
            prefix = f"{indent}# "
            yield from textwrap.wrap(
                f"{text or ''} {note}".strip(),
                _COLUMNS,
                initial_indent=prefix,
                subsequent_indent=prefix,
            )
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            tags = [tag for section in place.sections if (tag := tag_of(section)) in value.values()]
            chosen = tuple(tag for tag in tags if tag and len(place.sections) > 1)
            yield from _lines(value, (*path, name, *chosen), container)
        else:
            # JSON's scalars and lists are YAML's.
            yield f"{indent}{name}: {json.dumps(value, ensure_ascii=False)}"
