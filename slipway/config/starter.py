"""A first model config: valid, and every field with the schema's own words above it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from slipway.config.editor_schema import FIRST_LINE
from slipway.config.fields import find
from slipway.config.schema import ModelConfig

_COLUMNS = 100


@dataclass(frozen=True)
class Answers:
    """What a first config has to be told.

    Args:
        name: of the model.
        container: which of the containers that are deployed today.
        family: architecture of the network.
        parameters: number of its weights.
        instance: hosting instance type.
        sample: directory of a small model, relative to the project.
        latency_milliseconds: that the 99th percentile of the answers should stay under.
        image_uri: of a custom container.
    """

    name: str
    container: Literal["tensorrt", "custom"]
    family: str
    parameters: int
    instance: str
    sample: str
    latency_milliseconds: int
    image_uri: str | None = None


def render(answers: Answers) -> str:
    """Returns the file's text."""
    serving: dict[str, Any] = {"container": answers.container}
    if answers.container == "tensorrt":
        serving |= {
            "max_batch_size": 8,
            "max_input_tokens": 64,
            "max_new_tokens": 42,
            "default_new_tokens": 12,
        }
    else:
        serving |= {"image_uri": answers.image_uri}
    content: dict[str, Any] = {
        "name": answers.name,
        "description": "",
        "model": {"family": answers.family, "parameters": answers.parameters},
        "serving": serving,
        "artifacts": {"sample": {"path": answers.sample}},
        "endpoint": {
            "instances": [answers.instance],
            "instance_count": 1,
            "model_data_download_timeout_seconds": 600,
            "container_startup_health_check_timeout_seconds": 600,
        },
        "autoscaling": {
            "min_instance_count": 1,
            "max_instance_count": 2,
            "target_concurrent_requests_per_instance": 8,
        },
        "alarms": {"model_latency_p99_milliseconds": answers.latency_milliseconds},
    }
    return "\n".join([FIRST_LINE, *_lines(content, (), answers.container)]) + "\n"


def _lines(content: Mapping[str, Any], path: tuple[str, ...], container: str) -> Iterator[str]:
    indent = "  " * len(path)
    for name, value in content.items():
        if not path and isinstance(value, dict):
            yield ""
        # The validator's paths name the member of a union after its field.
        tagged = (path[0], container, *path[1:]) if path[:1] == ("serving",) else path
        place = find(ModelConfig, (*tagged, name))
        text = place.info.description if place.info else None
        if not text and place.sections:
            text = (place.sections[0].__doc__ or "").strip().splitlines()[0]
        if text:
            prefix = f"{indent}# "
            yield from textwrap.wrap(
                text, _COLUMNS, initial_indent=prefix, subsequent_indent=prefix
            )
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _lines(value, (*path, name), container)
        else:
            # JSON's scalars and lists are YAML's.
            yield f"{indent}{name}: {json.dumps(value, ensure_ascii=False)}"
